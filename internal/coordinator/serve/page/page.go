// Package page has the page of campaigns, one campaign, the fleet, the submission and the comparison, as it is built for browsers.
//
// The sources are in src: Preact components over values, one per file. Those of main.jsx come from the HTTP API, whose changes events.js follows; those of
// report.jsx from the page of a report, which holds them. build.mjs bundles both, the latter into internal/report/page. The bundles are committed and
// embedded, so that Go needs no Node: after a change of src run make page.
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
