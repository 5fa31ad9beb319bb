// Package page has the page of campaigns, one campaign, the fleet, the submission and the comparison, as it is built for browsers.
//
// The sources are in src: Preact components, one per file, over the HTTP API; events.js follows its changes. The style sheet begins with that of
// coordinator/report/page, and the viewer uses its zoom. build.mjs bundles src into dist, which is committed and embedded, so that Go needs no
// Node: after a change of src run make page.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

//go:embed dist
var dist embed.FS

// asset is a file of the page.
type asset struct {
	data      []byte
	tag, kind string
}

// Handler answers with the files of the page, compressed for clients that accept it.
func Handler() (http.Handler, error) {
	assets := make(map[string]asset)
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := dist.ReadFile(name)
		sum := sha256.Sum256(data)
		assets["/"+path.Base(name)] = asset{data, `"` + hex.EncodeToString(sum[:12]) + `"`, mime.TypeByExtension(path.Ext(name))}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	assets["/"], assets["/favicon.ico"] = assets["/index.html"], assets["/icon.svg"]
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets[r.URL.Path]
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", a.tag)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
	})), nil
}
