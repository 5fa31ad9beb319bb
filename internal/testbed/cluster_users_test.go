package testbed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The files of docs/security that the servers run with.
const (
	accountsFile = "nats-accounts.conf"
	serverFile   = "nats-server.conf"
)

// RoleAdmin has every permission. It is not part of docs/security: tests that inject faults need it.
const RoleAdmin Role = "admin"

// Users holds the users of a NATS cluster with the permissions of docs/security.
type Users struct {
	passwords map[Role]string
}

// newUsers copies the files of docs/security to dir and generates passwords.
func newUsers(ctx context.Context, dir string) (*Users, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{accountsFile, serverFile} {
		data, err := os.ReadFile(filepath.Join(root, "docs", "security", name))
		if err != nil {
			return nil, fmt.Errorf("copy configuration: %w", err)
		}
		text := string(data)
		if name == accountsFile {
			const first = "      { user: coordinator,"
			if strings.Count(text, first) != 1 {
				return nil, errors.New("copy configuration: " + name + ": want exactly one user of the account with the streams")
			}
			text = strings.Replace(text, first, "      { user: admin, password: $DDIFF_ADMIN_PASSWORD }\n"+first, 1)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("copy configuration: %w", err)
		}
	}
	u := &Users{passwords: map[Role]string{}}
	for _, role := range []Role{RoleCoordinator, RoleWorker, RoleAdmin} {
		// The server would parse a text of digits as a number.
		u.passwords[role] = "p-" + rand.Text()
	}
	return u, nil
}

// environment returns the variables that pass the users to the servers.
func (u *Users) environment() []string {
	if u == nil {
		return nil
	}
	var env []string
	for role, password := range u.passwords {
		env = append(env, "DDIFF_"+strings.ToUpper(string(role))+"_PASSWORD="+password)
	}
	return env
}

// URL returns the addresses of all servers for a role.
func (n *NATS) URL(role Role) string {
	u := url.URL{Scheme: "nats"}
	if n.Authority != nil {
		u.Scheme = "tls"
	}
	if n.users != nil && role != "" {
		u.User = url.UserPassword(string(role), n.users.passwords[role])
	}
	var all []string
	for _, u.Host = range n.clients {
		all = append(all, u.String())
	}
	return strings.Join(all, ",")
}

// Environment returns the variables that a program needs to reach the servers in a role.
func (n *NATS) Environment(role Role) []string {
	env := []string{"DDIFF_NATS_URL=" + n.URL(role)}
	if n.Authority != nil {
		env = append(env, "DDIFF_NATS_CA="+n.Authority.File)
	}
	if n.client.Cert != "" {
		env = append(env, "DDIFF_NATS_CERT="+n.client.Cert, "DDIFF_NATS_KEY="+n.client.Key)
	}
	return env
}
