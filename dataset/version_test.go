package dataset_test

import (
	"os"
	"testing"
	"time"

	"ddiff/manifest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	name, _, allow := bucket(t, map[string][]byte{"a.csv": []byte("image\na.png\n"), "b.csv": []byte("image\nb.png\n")})
	s := sources(t, allow)
	folder := t.TempDir()
	local := write(t, folder, "list.txt", []byte("a.png\n"))
	write(t, folder, "photos/a.png", picture(t, 1))
	version := func(path string) string {
		t.Helper()
		v, err := s.Version(t.Context(), manifest.Dataset{Path: path})
		must(t, err)
		return v
	}
	a, both := version("s3://"+name+"/a.csv"), version("s3://"+name+"/{a,b}.csv")
	if a == "" || both == "" || a == both || a != version("s3://"+name+"/a.csv") {
		t.Errorf("versions %q and %q", a, both)
	}
	before := version(local)
	must(t, os.Chtimes(local, time.Time{}, time.Unix(1e9, 0)))
	if after := version(local); before == "" || after == before {
		t.Errorf("a list that was written again has version %q, before %q", after, before)
	}
	for _, path := range []string{folder + "/photos", "s3://" + name, folder + "/photos/*.png"} {
		if v := version(path); v != "" {
			t.Errorf("%s has version %q", path, v)
		}
	}
	if _, err := s.Version(t.Context(), manifest.Dataset{Path: folder + "/none.csv"}); err == nil {
		t.Error("a missing list has a version")
	}
}
