package dataset_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

func TestShardSamples(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	npy := []byte("stands for an array")
	path := write(t, folder, "s.tar", tarFile(t,
		memberFile{"000.jpg", picture(t, 0)}, memberFile{"000.json", []byte("{}")}, memberFile{"000.mask.png", picture(t, 100)},
		memberFile{"cats/v1.0/001.png", picture(t, 1)}, memberFile{"cats/v1.0/001.kernel.npy", npy}, memberFile{"cats/v1.0/001.NPY", npy},
		memberFile{"002.measurement.npy", npy},
		memberFile{"003.txt", []byte("a caption")},
		memberFile{"004.png", nil},
		memberFile{"005.png", picture(t, 5)}, memberFile{"005.jpg", picture(t, 5)},
		memberFile{"../../006.png", picture(t, 6)},
		memberFile{"/007.png", picture(t, 7)},
		memberFile{"._008.png", picture(t, 8)},
		memberFile{strings.Repeat("long/", 60) + "é # ?&=%.png", picture(t, 9)},
	))
	s := sources(t, nil)
	all, skipped, err := rows(t, s, manifest.Dataset{Path: path})
	must(t, err)
	long := strings.Repeat("long/", 60) + "é # ?&=%"
	for i, tc := range []struct {
		name, problem                    string
		image, measurement, mask, kernel []byte
	}{
		{name: "000", image: picture(t, 0), mask: picture(t, 100)},
		{name: "cats/v1.0/001", image: picture(t, 1), measurement: npy, kernel: npy},
		{name: "002", measurement: npy},
		{name: "004", problem: "s.tar: 004.png: empty member"},
		{name: "005", problem: "s.tar: 005.jpg: sample has another image; use different names up to the first dot"},
		{name: "006", image: picture(t, 6)},
		{name: "007", image: picture(t, 7)},
		{name: long, image: picture(t, 9)},
	} {
		r := all[i]
		if r.Name != tc.name || (r.Err != nil) != (tc.problem != "") || r.Err != nil && r.Err.Error() != tc.problem {
			t.Errorf("row %d is %+v, error %v, want %s", i, r, r.Err, tc.name)
		}
		if r.Err != nil {
			continue
		}
		for address, want := range map[string][]byte{r.Image: tc.image, r.Measurement: tc.measurement, r.Overrides.Mask: tc.mask, r.Overrides.Kernel: tc.kernel} {
			if address == "" {
				continue
			}
			if got, err := s.Get(t.Context(), address); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %q, error %v", address, got, err)
			}
		}
	}
	if len(all) != 8 {
		t.Errorf("%d rows", len(all))
	}
	if got := strings.Join(skipped, " "); got != path+"#000.json "+path+"#003.txt "+path+"#._008.png" {
		t.Errorf("skipped %s", got)
	}
	mapped, _, err := rows(t, s, manifest.Dataset{Path: path, Columns: map[string]string{"image": "mask.png", "mask": "jpg"}})
	if err != nil || mapped[0].Image == "" || mapped[0].Image != all[0].Overrides.Mask || mapped[0].Overrides.Mask != all[0].Image {
		t.Errorf("%+v, error %v", mapped[0], err)
	}
	if _, _, err := rows(t, s, manifest.Dataset{Path: path, Columns: map[string]string{"sigma": "json"}}); !errors.Is(err, manifest.ErrBadList) {
		t.Errorf("sigma: %v", err)
	}
}

// TestShardDots: pictures whose names have dots are rows, unless their sample has an image.
func TestShardDots(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "s.tar", tarFile(t,
		memberFile{"22.0/1.1.png", picture(t, 0)}, memberFile{"22.0/1.2.png", picture(t, 1)}, memberFile{"22.0/2.png", picture(t, 2)},
		memberFile{"22.0/2.seg.png", picture(t, 3)}, memberFile{"22.0/Track 2.0 (x).PNG", picture(t, 4)}, memberFile{"22.0/3.a.txt", []byte("x")}, memberFile{"22.0/4.mask.png", picture(t, 5)},
	))
	s := sources(t, nil)
	all, skipped, err := rows(t, s, manifest.Dataset{Path: path})
	must(t, err)
	var names []string
	for i, r := range all {
		names = append(names, r.Name)
		got, err := s.Get(t.Context(), r.Image)
		if want := picture(t, []int{0, 1, 2, 4}[i]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: error %v", r.Name, err)
		}
	}
	if got := strings.Join(names, ","); got != "22.0/1.1,22.0/1.2,22.0/2,22.0/Track 2.0 (x)" {
		t.Errorf("rows %s", got)
	}
	if got := strings.Join(skipped, " "); got != path+"#22.0/2.seg.png "+path+"#22.0/3.a.txt "+path+"#22.0/4.mask.png" {
		t.Errorf("skipped %s", got)
	}
	all, _, err = rows(t, s, manifest.Dataset{Path: path, Columns: map[string]string{"image": "2.png"}})
	if err != nil || len(all) != 1 || all[0].Name != "22.0/1" {
		t.Errorf("with columns: %v, error %v", all, err)
	}
}

// A sample has at most 64 members.
func TestShardSampleLimit(t *testing.T) {
	t.Parallel()
	for n, valid := range map[int]bool{64: true, 65: false} {
		members := []memberFile{{"a.png", picture(t, 1)}}
		for i := 1; i < n; i++ {
			members = append(members, memberFile{fmt.Sprintf("a.%d.txt", i), []byte("x")})
		}
		path := write(t, t.TempDir(), "x.tar", tarFile(t, members...))
		all, _, err := rows(t, sources(t, nil), manifest.Dataset{Path: path})
		if valid && (err != nil || len(all) != 1 || all[0].Err != nil) {
			t.Errorf("%d members: rows %v, error %v", n, all, err)
		}
		if bad := errors.Is(err, dataset.ErrBadArchive) || len(all) > 0 && errors.Is(all[len(all)-1].Err, dataset.ErrBadArchive); bad == valid {
			t.Errorf("%d members: rows %v, error %v", n, all, err)
		}
	}
}

// The beginning of a large member is checked before the rest is read.
func TestLargeMemberIsCheckedFirst(t *testing.T) {
	t.Parallel()
	large := append(picture(t, 1), make([]byte, 17<<20)...)
	folder := t.TempDir()
	write(t, folder, "x.tar", tarFile(t, memberFile{"a.png", large}))
	var sent atomic.Int64
	base, allow := webServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			var from, to int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err == nil {
				sent.Add(to - from + 1)
			}
		}
		return false
	})
	refused := errors.New("refused")
	s := sources(t, func(c *dataset.Config) {
		allow(c)
		c.CheckImage = func([]byte, int64) error { return refused }
	})
	all, _, err := rows(t, s, manifest.Dataset{Path: base + "/x.tar"})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	sent.Store(0)
	if _, err := s.Get(t.Context(), all[0].Image); !errors.Is(err, refused) {
		t.Errorf("error %v, want that of the check", err)
	}
	if n := sent.Load(); n == 0 || n > 2<<20 {
		t.Errorf("%d bytes were requested", n)
	}
}

func TestShardProblems(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	whole := tarFile(t, memberFile{"0.png", picture(t, 0)}, memberFile{"1.png", picture(t, 1)}, memberFile{"2.png", picture(t, 2)})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(whole); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
	damaged := bytes.Clone(whole)
	at := bytes.Index(damaged, []byte("2.png"))
	damaged[at+100] ^= 1
	files := map[string][]byte{
		"packed.tar": packed.Bytes(), "words.tar": bytes.Repeat([]byte("no tar file "), 100),
		"nothing.tar": {}, "damaged.tar": damaged, "cut.tar": whole[:at+512+10], "none.tar": tarFile(t, memberFile{"a.txt", []byte("x")}),
	}
	for name, data := range files {
		write(t, folder, name, data)
	}
	for _, cached := range []bool{true, false} {
		s := sources(t, func(c *dataset.Config) {
			if !cached {
				c.CacheBytes = -1
			}
		})
		for name, tc := range map[string]struct {
			sound int
			want  error
		}{
			"packed.tar": {0, manifest.ErrBadList}, "nothing.tar": {0, manifest.ErrEmptyDataset}, "words.tar": {0, dataset.ErrBadArchive}, "none.tar": {0, manifest.ErrEmptyDataset},
			"damaged.tar": {2, dataset.ErrBadArchive}, "cut.tar": {2, dataset.ErrBadArchive}, "missing.tar": {0, os.ErrNotExist},
		} {
			all, _, err := rows(t, s, manifest.Dataset{Path: filepath.Join(folder, name)})
			if tc.sound == 0 {
				if len(all) != 0 || !errors.Is(err, tc.want) {
					t.Errorf("%s: %d rows, error %v", name, len(all), err)
				}
				continue
			}
			// The rows before the damage are valid, and a failed row reports the missing rows.
			if err != nil || len(all) != tc.sound+1 || all[0].Err != nil || all[1].Err != nil || !errors.Is(all[2].Err, tc.want) {
				t.Errorf("%s: %+v, error %v", name, all, err)
			}
		}
		// A damaged shard does not affect the other shards.
		write(t, folder, "good.tar", whole)
		all, _, err := rows(t, s, manifest.Dataset{Path: folder + "/{packed,good,missing}.tar"})
		if err != nil || len(all) != 5 || all[0].Err == nil || all[1].Err != nil || all[4].Err == nil {
			t.Errorf("%+v, error %v", all, err)
		}
	}
}

// tar stores the second name of a file as a link without bytes: its row fails. A symbolic link is not followed.
func TestShardLinks(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.png", Size: int64(len(picture(t, 0))), Mode: 0o644}))
	if _, err := w.Write(picture(t, 0)); err != nil {
		t.Fatal(err)
	}
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeLink, Name: "b.png", Linkname: "a.png"},
		{Typeflag: tar.TypeSymlink, Name: "c.png", Linkname: "/etc/passwd"},
		{Typeflag: tar.TypeSymlink, Name: "folder", Linkname: "/etc"},
	} {
		must(t, w.WriteHeader(&h))
	}
	must(t, w.Close())
	all, skipped, err := rows(t, sources(t, nil), manifest.Dataset{Path: write(t, t.TempDir(), "s.tar", buf.Bytes())})
	if err != nil || len(all) != 3 || all[0].Err != nil || len(skipped) != 1 {
		t.Fatal(all, skipped, err)
	}
	for _, row := range all[1:] {
		if row.Err == nil || !strings.Contains(row.Err.Error(), "stored as a link; create the shard with --dereference and --hard-dereference") {
			t.Errorf("row %q: %v", row.Name, row.Err)
		}
	}
}

// A shard is read once for its index; then each image is one ranged read of its size.
func TestShardIsIndexedOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var members []memberFile
	for i := range 40 {
		members = append(members, memberFile{fmt.Sprintf("%02d.png", i), append(picture(t, i), make([]byte, 100_000)...)})
	}
	shard := tarFile(t, members...)
	write(t, folder, "s.tar", shard)
	var sent, requests atomic.Int64
	base, allow := webServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			requests.Add(1)
			var from, to int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
				t.Errorf("request for the complete shard")
			}
			sent.Add(to - from + 1)
		}
		return false
	})
	s := sources(t, allow)
	d := manifest.Dataset{Path: base + "/s.tar"}
	if all, _, err := rows(t, s, d); err != nil || len(all) != len(members) {
		t.Fatal(err)
	}
	if n := requests.Load(); n > int64(len(shard)>>20)+3 {
		t.Errorf("%d requests for the index of %d blocks", n, len(shard)>>20+1)
	}
	requests.Store(0)
	all, _, err := rows(t, s, d)
	if err != nil || requests.Load() > 1 {
		t.Errorf("%d requests for rows with a cached index, error %v", requests.Load(), err)
	}
	requests.Store(0)
	sent.Store(0)
	data, err := s.Get(t.Context(), all[17].Image)
	if err != nil || !bytes.Equal(data, members[17].data) || requests.Load() != 1 || sent.Load() != int64(len(data)) {
		t.Errorf("%d requests and %d bytes for a member of %d, error %v", requests.Load(), sent.Load(), len(data), err)
	}
	small := sources(t, func(c *dataset.Config) { allow(c); c.MaxBytes = 1000 })
	if _, err := small.Get(t.Context(), all[17].Image); !errors.Is(err, dataset.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	beyond := strings.Replace(all[17].Image, "offset=", "offset=9", 1)
	if _, err := s.Get(t.Context(), beyond); !errors.Is(err, dataset.ErrChanged) {
		t.Errorf("range after the end: %v", err)
	}
}
