package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/dataset"
)

// TestChecks: every kind of address gives its beginning and its size to the check of its name. A refused file is not read
// further.
func TestChecks(t *testing.T) {
	t.Parallel()
	const size = 17 << 20 // above the limit of a member whose beginning is read with the rest
	large := append([]byte("GIF89a, and no image that is supported"), make([]byte, size)...)
	folder := t.TempDir()
	shard := tarFile(t, memberFile{"small.png", large[:100]}, memberFile{"large.png", large})
	cells := parquetFile(t, []struct {
		Image []byte `parquet:"image"`
	}{{large[:200]}}, 1, parquet.SkipPageBounds("image"))
	for name, data := range map[string][]byte{"a.png": large, "noextension": large, "a.npy": large, "s.tar": shard, "c.parquet": cells} {
		write(t, folder, name, data)
	}
	name, server, allowS3 := bucket(t, nil)
	for _, file := range []string{"a.png", "noextension", "a.npy"} {
		write(t, filepath.Join(server.Root, name), file, large)
	}
	write(t, filepath.Join(server.Root, name), "s.tar", shard)
	url, allowWeb := webServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/plain" {
			return false
		}
		_, _ = w.Write(large) // without ranges, with a chunked answer; fails if the client refuses it
		return true
	})
	errImage, errOther := errors.New("no image"), errors.New("no file of a row")
	var sizes []int64
	s := sources(t, func(c *dataset.Config) {
		allowS3(c)
		allowWeb(c)
		c.MaxBytes, c.CacheBytes = 64<<20, -1
		check := func(refusal error) dataset.Check {
			return func(beginning []byte, size int64) error {
				if !bytes.HasPrefix(large, beginning) || len(beginning) != 32 {
					t.Errorf("beginning %q", beginning)
				}
				sizes = append(sizes, size)
				return refusal
			}
		}
		c.CheckImage, c.CheckOther = check(errImage), check(errOther)
	})
	first, second := int64(bytes.Index(shard, large[:100])), int64(bytes.LastIndex(shard, large[:100]))
	member := func(object, name string, offset, size int64) string {
		return fmt.Sprintf("tar+%s/s.tar#name=%s&offset=%d&size=%d", object, name, offset, size)
	}
	s3 := "s3://" + name
	for _, c := range []struct {
		address string
		want    error
		data    []byte
		size    int64 // of the check
	}{
		{folder + "/a.png", errImage, large, int64(len(large))},
		{folder + "/noextension", nil, large, 0},
		{folder + "/a.npy", nil, large, 0},
		{s3 + "/a.png", errImage, large, int64(len(large))},
		{s3 + "/noextension", errOther, large, int64(len(large))},
		{s3 + "/a.npy", nil, large, 0},
		{url + "/a.png", errImage, large, int64(len(large))},
		{url + "/noextension", errOther, large, int64(len(large))},
		{url + "/a.npy", nil, large, 0},
		{url + "/plain", errOther, large, -1},
		{member("file://"+folder, "small.png", first, 100), errImage, large[:100], 100},
		{member("file://"+folder, "large.png", second, int64(len(large))), errImage, large, int64(len(large))},
		{member(s3, "small.png", first, 100), errImage, large[:100], 100},
		{member(s3, "large.png", second, int64(len(large))), errImage, large, int64(len(large))},
		{member(url, "large.png", second, int64(len(large))), errImage, large, int64(len(large))},
		{"parquet+file://" + folder + "/c.parquet#column=image&name=a.png&row=0", errImage, large[:200], 200},
	} {
		sizes = nil
		data, err := s.Get(t.Context(), c.address)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: error %v, want %v", c.address, err, c.want)
			continue
		}
		if c.want == nil {
			if !bytes.Equal(data, c.data) {
				t.Errorf("%s: other bytes", c.address)
			}
			continue
		}
		if len(sizes) != 1 || sizes[0] != c.size {
			t.Errorf("%s: the check gets the sizes %d, want %d", c.address, sizes, c.size)
		}
	}
}
