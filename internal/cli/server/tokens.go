package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ddiff/api"
	"ddiff/internal/regular"
)

// errDamaged is the error of a file that ddiff login replaces.
var errDamaged = errors.New("the file is damaged; sign in again")

// tokensFile returns the file with the tokens of ddiff login: a JSON object from addresses of servers to their tokens. Python has the same rule.
func tokensFile() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if filepath.IsAbs(dir) {
		return filepath.Join(dir, "ddiff", "tokens.json"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "ddiff", "tokens.json"), err
}

// readTokens returns the tokens, none of a missing file. Of a file with errDamaged it returns the readable ones.
func readTokens() (path string, all map[string]string, err error) {
	if path, err = tokensFile(); err == nil {
		all, err = readPrivate(path)
	}
	if all == nil { // also after a null
		all = map[string]string{}
	}
	if err != nil {
		err = fmt.Errorf("read the tokens of ddiff login in %s: %w", path, err)
	}
	return path, all, err
}

func readPrivate(path string) (all map[string]string, err error) {
	f, _, err := regular.Open(path, regular.MaxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read %s; run: chmod 600 %s", path, path)
	}
	data, err := io.ReadAll(f)
	if err == nil && json.Unmarshal(data, &all) != nil {
		err = errDamaged
	}
	return all, err
}

// stored returns the token of ddiff login for a server; empty: none.
func stored(address string) (string, error) {
	if _, err := tokensFile(); err != nil {
		return "", nil //nolint:nilerr // an account without a home
	}
	_, all, err := readTokens()
	return all[strings.TrimRight(address, "/")], err
}

// Login keeps a token for the named server, which accepts it, in a file that only this user can read.
func (f *Flags) Login(ctx context.Context, address, token string) (api.Me, error) {
	c, err := f.client(address, token)
	if err != nil {
		return api.Me{}, err
	}
	me, err := c.Me(ctx)
	if err != nil {
		return me, err
	}
	path, all, err := readTokens()
	if err != nil && !errors.Is(err, errDamaged) {
		return me, err
	}
	all[strings.TrimRight(address, "/")] = token
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = regular.Replace(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		err = fmt.Errorf("keep the token: %w", err)
	}
	return me, err
}
