package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/image/draw"

	"ddiff/api"
	"ddiff/internal/report/page"
	"ddiff/restore/item"
)

// file is the answer with the bytes of a file.
type file struct {
	Type     string `header:"Content-Type"`
	Cache    string `header:"Cache-Control"`
	Security string `header:"Content-Security-Policy"`
	Body     []byte
}

const (
	// sandboxed is the policy of a file from the store: it has no access to this site, whatever it is.
	sandboxed = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
	// pagePolicy and the source of the script are the policy of a report's page, which needs its origin to read its pictures.
	pagePolicy = "sandbox allow-scripts allow-same-origin allow-downloads; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; script-src "
	// reportFrame is what a browser gets in place of a report's page, and framePolicy its policy: inside a frame of this site, a page of a stranger cannot
	// lead its reader to another.
	reportFrame = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Report</title>" +
		"<style>html, body, iframe { margin: 0; border: 0; width: 100%; height: 100%; display: block; }</style>" +
		"<iframe title=\"Report\" sandbox=\"allow-scripts allow-same-origin allow-downloads\" src=\"?framed=true\"></iframe></html>\n"
	framePolicy = "default-src 'none'; frame-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// cacheForever lets clients keep the file of an item for a day: its content follows from the item.
const cacheForever = "private, max-age=86400, immutable"

func (s *Server) addItems() {
	b := s.cfg.Backend
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/items", "List, filter and sort the items", func(ctx context.Context, in *struct {
		InCampaign
		api.ItemQuery
	},
	) (api.Items, error) {
		return b.Items(ctx, in.ID, in.ItemQuery)
	})
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/throughput", "Count the results over time", func(ctx context.Context, in *InCampaign) (api.Throughput, error) {
		return b.Throughput(ctx, in.ID)
	})
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/items/{item}", "Get an item, its result and its files", func(ctx context.Context, in *InItem) (api.ItemDetail, error) {
		return b.Item(ctx, in.ID, in.Item)
	})
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/items/{item}/logs", "Get the log lines of an item's attempts", func(ctx context.Context, in *InItem) (api.Logs, error) {
		return b.Logs(ctx, in.ID, in.Item)
	})
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/items/{item}/trace", "Get the solver's curves", func(ctx context.Context, in *InItem) (item.Trace, error) {
		var t item.Trace
		data, err := s.read(ctx, in.ID, item.Key(in.Item, item.FileTrace))
		if err != nil {
			return t, err
		}
		if err := json.Unmarshal(data, &t); err != nil {
			return t, fmt.Errorf("read the curves of item %s: %w", in.Item, err)
		}
		return t, nil
	})
	files := s.operation(api.Viewer, http.MethodGet, "/campaigns/{id}/items/{item}/files/{name}", "Get a file of an item, or a thumbnail of a picture",
		content("image/png", "application/octet-stream", "application/json"))
	huma.Register(s.api, files, func(ctx context.Context, in *struct {
		InItem
		Name  string `path:"name" maxLength:"100" pattern:"^[a-z0-9_]+(\\.[a-z0-9_]+)+$"`
		Width int    `query:"width" minimum:"8" maximum:"4096" doc:"Width of a thumbnail in pixels; no picture is enlarged"`
	},
	) (*file, error) {
		data, err := s.read(ctx, in.ID, item.Key(in.Item, in.Name))
		if err == nil && in.Width > 0 {
			data, err = s.thumbnail(ctx, data, in.Width)
		}
		if err != nil {
			return nil, s.failed(ctx, files, err)
		}
		return &file{Type: mediaType(in.Name), Cache: cacheForever, Security: sandboxed, Body: data}, nil
	})
}

func (s *Server) addReport() {
	script := page.ScriptSource()
	report := s.operation(api.Viewer, http.MethodGet, "/campaigns/{id}/report/{path...}", "Get a file of the report, such as index.html or results.csv",
		content("text/html", "text/csv", "text/markdown", "image/png", "image/svg+xml", "application/json", "application/octet-stream"))
	huma.Register(s.api, report, func(ctx context.Context, in *struct {
		InCampaign
		Path   string `path:"path" maxLength:"500"`
		Framed bool   `query:"framed" doc:"The page itself, in place of a frame with it"`
		Dest   string `header:"Sec-Fetch-Dest"`
	},
	) (*file, error) {
		if !fileOfReport(in.Path) {
			return nil, api.NewError(api.ErrNotFound, "the report has no such file")
		}
		// A program gets the page itself, a browser a frame with it: an old one does not say what it asks for.
		inFrame := in.Framed && (in.Dest == "iframe" || in.Dest == "")
		if in.Path == page.Key && identityOf(ctx).session != "" && !inFrame {
			return &file{Type: "text/html; charset=utf-8", Security: framePolicy, Body: []byte(reportFrame)}, nil
		}
		data, err := s.read(ctx, in.ID, in.Path)
		if err != nil {
			return nil, s.failed(ctx, report, err)
		}
		out := &file{Type: mediaType(in.Path), Security: sandboxed, Body: data}
		if in.Path == page.Key {
			out.Type, out.Security = "text/html; charset=utf-8", pagePolicy+script
		}
		return out, nil
	})
}

// fileOfReport reports whether a key is that of a file that a report may have: a clean key without hidden folders.
func fileOfReport(key string) bool {
	return key != "" && path.Clean("/"+key) == "/"+key && !strings.Contains("/"+key, "/.") && !strings.ContainsAny(key, "\\\x00")
}

func mediaType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".csv", ".json", ".png", ".svg", ".jpg":
		return mime.TypeByExtension(ext)
	case ".md":
		return "text/markdown; charset=utf-8"
	}
	return "application/octet-stream"
}

// maxThumbnail is the largest number of pixels of a picture that the server decodes.
const maxThumbnail = 64 << 20

// thumbnail scales a PNG down to a width. All requests together decode up to maxThumbnail pixels at once.
func (s *Server) thumbnail(ctx context.Context, data []byte, width int) ([]byte, error) {
	header, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || header.Width*header.Height > maxThumbnail {
		return nil, api.NewError(api.ErrInvalid, "width: the file is no picture that can be scaled")
	}
	if header.Width <= width {
		return data, nil
	}
	pixels := int64(header.Width) * int64(header.Height)
	if err := s.pixels.Acquire(ctx, pixels); err != nil {
		return nil, err
	}
	defer s.pixels.Release(pixels)
	src, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("scale a picture: %w", err)
	}
	dst := image.NewNRGBA(image.Rect(0, 0, width, max(1, header.Height*width/header.Width)))
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, dst); err != nil {
		return nil, fmt.Errorf("scale a picture: %w", err)
	}
	return out.Bytes(), nil
}
