package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"

	"ddiff/internal/regular"
	"ddiff/storage"
)

// The names of folders that this program makes and deletes: scratch folders in the user's cache and among the temporary files.
var (
	scratchName     = regexp.MustCompile(`^[0-9a-f]{12}(-[0-9]+)?$`)
	tempScratchName = regexp.MustCompile(`^` + scratchPrefix + `[0-9]+$`)
)

const scratchPrefix = "ddiff-queue-"

// MakeScratch creates and locks an empty directory for the queue and the windows of an output, which only this user can read. It is in the
// user's cache, and files of an earlier run are deleted; if another process uses that directory, it is a new one beside it; without a
// cache it is among the temporary files. It is not in the output, because a full or remote output disk must not stop the queue.
func MakeScratch(output string) (dir string, remove func() error, err error) {
	out, err := filepath.Abs(output)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(out))
	name := hex.EncodeToString(sum[:6])
	parent, err := scratchParent()
	if err == nil {
		err = os.MkdirAll(parent, 0o700)
	}
	if err == nil {
		folder := filepath.Join(parent, name)
		dir, remove, err = lockScratch(folder)
		if errors.Is(err, storage.ErrConflict) && removeDamaged(parent, folder) == nil {
			dir, remove, err = lockScratch(folder)
		}
		if err == nil {
			return dir, remove, nil
		}
		if temp, e := os.MkdirTemp(parent, name+"-"); e == nil {
			return lockScratch(temp)
		}
	}
	if temp, e := os.MkdirTemp("", scratchPrefix); e == nil {
		return lockScratch(temp)
	}
	return "", nil, err
}

// lockScratch makes an empty folder in a scratch folder, which gc does not delete before remove.
func lockScratch(folder string) (dir string, remove func() error, err error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !regular.IsPrivate(folder) {
		return "", nil, err
	}
	lock, err := storage.AcquireLock(folder)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(folder, "run")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return "", nil, errors.Join(err, lock.Unlock())
	}
	return dir, func() error { return errors.Join(os.RemoveAll(folder), lock.Unlock()) }, nil
}

// removeDamaged removes a scratch folder of this user whose lock is damaged, so that no process can have it. One process at a time does so, and
// looks again: another one may have made the folder anew.
func removeDamaged(parent, folder string) (err error) {
	lock, err := storage.AcquireLock(parent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	own, err := storage.AcquireLock(folder)
	switch {
	case err == nil:
		return own.Unlock()
	case !errors.Is(err, storage.ErrConflict):
		return err
	}
	return os.RemoveAll(folder)
}

func scratchParent() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "ddiff", "queue"), err
}

// ScratchFolders returns the folders that MakeScratch made for this user, those in use too.
func ScratchFolders() []string {
	folders := ownFolders(os.TempDir(), tempScratchName)
	if parent, err := scratchParent(); err == nil {
		folders = append(ownFolders(parent, scratchName), folders...)
	}
	return folders
}

// ownFolders returns the folders in another one that have a name of this program, belong to this user, and to which nobody else may write.
func ownFolders(parent string, name *regexp.Regexp) (folders []string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if path := filepath.Join(parent, entry.Name()); name.MatchString(entry.Name()) && regular.IsPrivate(path) {
			folders = append(folders, path)
		}
	}
	return folders
}
