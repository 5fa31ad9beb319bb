package serve

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/errgroup"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/regular"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// archiveChunk is the part of an archive in bytes that a client must take within sendLimit.
	archiveChunk = 64 << 10
	tarBlock     = 512
)

// archived is a file of an archive.
type archived struct {
	key    string // below the output
	digest string // SHA-256 as result.json has it; empty for result.json itself
	header tar.Header
}

// length is the number of bytes of the file in the archive, with its header.
func (f *archived) length() int64 {
	return tarBlock + (f.header.Size+tarBlock-1)/tarBlock*tarBlock
}

// addArchive adds the route of the files of selected items.
func (s *Server) addArchive() {
	op := s.operation(api.Viewer, http.MethodGet, "/campaigns/{id}/archive",
		"Get the files of the done items on a page of items, in their order, as a tar archive; each is checked against its digest. A Range resumes", content("application/x-tar"))
	huma.Register(s.api, op, func(ctx context.Context, in *struct {
		InCampaign
		api.ItemQuery
		Range   string `header:"Range"`
		IfRange string `header:"If-Range"`
	},
	) (*huma.StreamResponse, error) {
		files, o, err := s.archived(ctx, in.ID, in.ItemQuery)
		if err != nil {
			return nil, s.failed(ctx, op, err)
		}
		a, err := s.archives.begin(identityOf(ctx))
		if err != nil {
			return nil, board.Problem(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			defer a.end()
			r, w := humago.Unwrap(ctx)
			s.sendArchive(r.Context(), w, in.ID, o, a, files, in.Range, in.IfRange)
		}}, nil
	})
}

// archived lists the files of the archive of a page of items.
func (s *Server) archived(ctx context.Context, id string, q api.ItemQuery) ([]archived, result.Output, error) {
	o, err := s.cfg.Backend.Output(ctx, id)
	if err != nil {
		return nil, o, err
	}
	page, err := s.cfg.Backend.Items(ctx, id, q)
	if err != nil {
		return nil, o, err
	}
	ofItem := make([][]archived, len(page.Items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(result.ReadCalls)
	for i, it := range page.Items {
		if it.State != api.StateDone {
			continue
		}
		group.Go(func() error {
			stored, r, err := filesOf(inner, o, it.ID)
			if err != nil {
				return fmt.Errorf("read item %s: %w", it.ID, err)
			}
			folder := fmt.Sprintf("%04d %.40s %.30s %.30s %d/", i+1, plain(it.Name), it.Task, it.Method, it.Run)
			for _, f := range stored {
				name := f.Key[len(item.Key(it.ID, "")):]
				if digest, listed := r.Artifacts[name]; listed || name == item.FileResult {
					header := tar.Header{Name: folder + name, Mode: 0o644, Size: f.Size, ModTime: r.Finished.Truncate(time.Second), Format: tar.FormatUSTAR}
					ofItem[i] = append(ofItem[i], archived{f.Key, digest, header})
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, o, err
	}
	var files []archived
	for _, of := range ofItem {
		files = append(files, of...)
	}
	if len(files) == 0 {
		return nil, o, api.NewError(api.ErrNotFound, "no item that matches has a result")
	}
	return files, o, nil
}

// filesOf lists the files of a done item, and reads its result.
func filesOf(ctx context.Context, o result.Output, id string) (files []storage.Info, r item.Result, err error) {
	for info, err := range o.Store.List(ctx, item.Key(id, "")) {
		if err != nil {
			return nil, r, err
		}
		files = append(files, info)
	}
	data, err := o.Store.Get(ctx, item.Key(id, item.FileResult))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return files, r, err
}

// plain is a name without characters that a file system may refuse.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, name)
}

// sendArchive sends an archive, from the first byte of a range that the client asks for. An error after the head breaks the connection, so
// that no client takes a part for the whole.
func (s *Server) sendArchive(ctx context.Context, w http.ResponseWriter, id string, o result.Output, a *sender, files []archived, wanted, ifRange string) {
	total, sum := int64(2*tarBlock), sha256.New()
	for _, f := range files {
		total += f.length()
		fmt.Fprintln(sum, f.header.Name, f.header.Size, f.digest, f.header.ModTime.Unix())
	}
	tag := `"` + hex.EncodeToString(sum.Sum(nil)[:12]) + `"`
	h := w.Header()
	h.Set("Content-Type", "application/x-tar")
	h.Set("Content-Disposition", `attachment; filename="`+id+`.tar"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	h.Set("Accept-Ranges", "bytes")
	from, status := int64(0), http.StatusOK
	if begin, ok := strings.CutPrefix(wanted, "bytes="); ok && cmp.Or(ifRange, tag) == tag {
		// Only the rest of an archive is a range: that is what resumes.
		if n, err := strconv.ParseInt(strings.TrimSuffix(begin, "-"), 10, 64); err == nil && strings.HasSuffix(begin, "-") && n >= 0 {
			if from, status = n, http.StatusPartialContent; from >= total {
				h.Set("Content-Range", fmt.Sprintf("bytes */%d", total))
				writeProblem(w, &api.Error{Title: http.StatusText(http.StatusRequestedRangeNotSatisfiable), Status: http.StatusRequestedRangeNotSatisfiable, Detail: "the archive is whole"})
				return
			}
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, total-1, total))
		}
	}
	h.Set("Content-Length", strconv.FormatInt(total-from, 10))
	w.WriteHeader(status)
	if err := writeArchive(ctx, &rest{to: w, deadline: http.NewResponseController(w).SetWriteDeadline, skip: from}, o, a, files); err != nil {
		if ctx.Err() == nil && !errors.Is(err, errClient) {
			s.cfg.Logger.Error("cannot send an archive", "campaign", id, "reason", err)
		}
		panic(http.ErrAbortHandler)
	}
}

func writeArchive(ctx context.Context, out *rest, o result.Output, a *sender, files []archived) error {
	archive := tar.NewWriter(out)
	for _, f := range files {
		if out.skip >= f.length() {
			out.skip -= f.length()
			continue
		}
		if err := writeFile(ctx, archive, o, a, f); err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
	}
	return archive.Close()
}

// writeFile writes a file with its padding.
func writeFile(ctx context.Context, archive *tar.Writer, o result.Output, a *sender, f archived) error {
	if f.header.Size > archiveMemory {
		return fmt.Errorf("has %d bytes, above the limit of %d; read it from the store", f.header.Size, archiveMemory)
	}
	release, err := a.acquire(ctx, f.header.Size)
	if err != nil {
		return err
	}
	defer release()
	data, err := o.Store.Get(ctx, f.key)
	if err != nil {
		return err
	}
	if int64(len(data)) != f.header.Size || f.digest != "" && regular.SHA256(data) != f.digest {
		return errors.New("does not match its digest")
	}
	if err := archive.WriteHeader(&f.header); err != nil {
		return err
	}
	if _, err := archive.Write(data); err != nil {
		return err
	}
	return archive.Flush()
}

// errClient: the client of an archive has left, or takes it too slowly.
var errClient = errors.New("the client takes no more")

// rest writes to a client what is behind the first skip bytes.
type rest struct {
	to       io.Writer
	deadline func(time.Time) error
	skip     int64
}

// Write implements io.Writer.
func (r *rest) Write(p []byte) (int, error) {
	n := min(r.skip, int64(len(p)))
	r.skip -= n
	for at := n; at < int64(len(p)); at += archiveChunk {
		_ = r.deadline(time.Now().Add(sendLimit)) // not in tests without a connection
		if _, err := r.to.Write(p[at:min(at+archiveChunk, int64(len(p)))]); err != nil {
			return int(at), fmt.Errorf("%w: %w", errClient, err)
		}
	}
	return len(p), nil
}
