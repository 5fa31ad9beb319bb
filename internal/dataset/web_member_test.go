package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestWebMembers reads the members of a shard from servers with and without support for ranges.
func TestWebMembers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	shard := tarFile(t, memberFile{"a.png", picture(t, 1)}, memberFile{"b.png", picture(t, 2)})
	write(t, folder, "x.tar", shard)
	for _, parts := range []bool{true, false} {
		var cut atomic.Int64 // length of the answer of a server that ends early; 0: complete
		base, allow := webServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
			if !parts {
				r.Header.Del("Range")
			}
			if n := cut.Load(); n > 0 && r.Method == http.MethodGet {
				if parts {
					w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				} else {
					w.Write(shard[:n]) //nolint:errcheck // the client may have disconnected
				}
				return true
			}
			return false
		})
		s := sources(t, func(c *dataset.Config) { allow(c); c.CacheBytes, c.MaxBytes = -1, int64(len(shard)) })
		names, images := validRows(t, s, manifest.Dataset{Path: base + "/x.tar"})
		want(t, names, images, "a b", 1, 2)

		offset := int64(bytes.Index(shard, picture(t, 2)))
		member := func(offset, size int64) string {
			return fmt.Sprintf("tar+%s/x.tar#name=b.png&offset=%d&size=%d", base, offset, size)
		}
		data, err := s.Get(t.Context(), member(offset, 30))
		if err != nil || !bytes.Equal(data, picture(t, 2)[:30]) {
			t.Errorf("parts %v: %d bytes, %v", parts, len(data), err)
		}
		// The last byte of the shard, and one byte more.
		end := int64(len(shard))
		if data, err := s.Get(t.Context(), member(end-1, 1)); err != nil || !bytes.Equal(data, []byte{0}) {
			t.Errorf("parts %v: last byte %v, %v", parts, data, err)
		}
		if _, err := s.Get(t.Context(), member(end-1, 2)); !errors.Is(err, dataset.ErrChanged) {
			t.Errorf("parts %v: beyond the end: %v, want ErrChanged", parts, err)
		}
		for _, n := range []int64{offset + 10, 10} {
			cut.Store(n)
			if _, err := s.Get(t.Context(), member(offset, 30)); !errors.Is(err, dataset.ErrChanged) {
				t.Errorf("parts %v: shard of %d bytes: %v, want ErrChanged", parts, n, err)
			}
		}
	}
}

// TestParquetNumbers: the numbers of every type are read without loss.
func TestParquetNumbers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 1))
	type line struct {
		Image    string  `parquet:"image"`
		Seed     uint64  `parquet:"seed"`
		Signed   int64   `parquet:"param.signed"`
		Small    int32   `parquet:"param.small"`
		Unsigned uint32  `parquet:"param.unsigned"`
		Single   float32 `parquet:"param.single"`
		Double   float64 `parquet:"param.double"`
	}
	path := write(t, folder, "list.parquet", parquetFile(t, []line{
		{"a.png", 1<<63 + 1, -1 << 52, -1 << 31, 1<<32 - 1, 0.1, 1.0 / 3},
	}, 1))
	all, _, err := rows(t, sources(t, nil), manifest.Dataset{Path: path})
	if err != nil || len(all) != 1 || all[0].Err != nil {
		t.Fatal(all, err)
	}
	if seed := all[0].Overrides.Seed; seed == nil || *seed != 1<<63+1 {
		t.Errorf("seed %v", seed)
	}
	for name, want := range map[string]float64{"signed": -1 << 52, "small": -1 << 31, "unsigned": 1<<32 - 1, "single": 0.1, "double": 1.0 / 3} {
		if got := all[0].Overrides.Params[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// A column of lists is no column of rows.
	type lists struct {
		Image string   `parquet:"image"`
		Seeds []uint64 `parquet:"seeds"`
	}
	path = write(t, folder, "lists.parquet", parquetFile(t, []lists{{"a.png", []uint64{1}}}, 1))
	_, _, err = rows(t, sources(t, nil), manifest.Dataset{Path: path, Columns: map[string]string{"seed": "seeds"}})
	if !errors.Is(err, manifest.ErrBadList) || !strings.Contains(err.Error(), "seeds") {
		t.Errorf("column of lists: %v", err)
	}
}
