package testbed

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeCampaign writes a list of rows, whose images do not exist, and a campaign file for it, and
// returns the path of the campaign file.
func writeCampaign(dir, name string, rows int) (file string, err error) {
	list := filepath.Join(dir, name+".csv")
	f, err := os.Create(list)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "image,sha256,width,height")
	for i := range rows {
		fmt.Fprintf(w, "s3://images/%07d.png,%x,256,256\n", i, sha256.Sum256(fmt.Append(nil, i)))
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name+".yaml")
	text := fmt.Sprintf("name: %s\ndataset:\n  path: %q\n  size: 256\ntasks: [super_resolution]\n", name, list)
	return file, os.WriteFile(file, []byte(text), 0o644)
}
