package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ddiff/api"
	"ddiff/internal/regular"
)

// tokensFile returns the file with the tokens of ddiff login: a JSON object from addresses of servers to their tokens.
func tokensFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "ddiff", "tokens.json"), err
}

func readTokens() (path string, all map[string]string, err error) {
	all = map[string]string{}
	if path, err = tokensFile(); err != nil {
		return path, all, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, all, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return path, all, fmt.Errorf("read the tokens of ddiff login: others may read %s; run: chmod 600 %s", path, path)
	}
	data, err := regular.Read(path, regular.MaxConfigBytes)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		err = fmt.Errorf("read the tokens of ddiff login in %s: %w; sign in again", path, err)
	}
	return path, all, err
}

// stored returns the token of ddiff login for a server; empty: none.
func stored(address string) (string, error) {
	if _, err := tokensFile(); err != nil { // an account without a home
		return "", nil
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
	if err != nil {
		all = map[string]string{} // the user signs in again
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
