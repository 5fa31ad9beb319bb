package dataset

import (
	"archive/tar"
	"strings"
	"testing"
)

// TestColumnOf: the rest of a member's name determines its column.
func TestColumnOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ext     string
		columns map[string]string
		want    string
	}{
		{"png", nil, "image"}, {"jpg", nil, "image"}, {"image.png", nil, ""}, {"npy", nil, "measurement"}, {"measurement.npy", nil, "measurement"},
		{"mask.png", nil, "mask"}, {"mask.npy", nil, "mask"}, {"kernel.npy", nil, "kernel"}, {"kernel.png", nil, "kernel"},
		{"kernel.npy.gz", nil, ""}, {"other.npy", nil, ""}, {"other.png", nil, ""}, {"json", nil, ""}, {"", nil, ""},
		{"mask.json", nil, ""}, {"measurement.png", nil, ""},
		{"photo.png", map[string]string{"image": "Photo.PNG"}, "image"},
		{"png", map[string]string{"image": "photo.png"}, ""},
		{"png", map[string]string{"image": ""}, ""},
		{"npy", map[string]string{"image": "photo.png"}, "measurement"},
		{"", map[string]string{"image": ""}, ""},
	} {
		if got := columnOf(c.ext, c.columns); got != c.want {
			t.Errorf("%q with %v: column %q, want %q", c.ext, c.columns, got, c.want)
		}
	}
	for name, want := range map[string][2]string{
		"a.png": {"a", "png"}, "d.x/a.Mask.PNG": {"d.x/a", "mask.png"}, "a": {"a", ""}, "d/": {"d/", ""},
	} {
		if key, ext := splitMember(name); key != want[0] || ext != want[1] {
			t.Errorf("%s is split into %q and %q, want %q", name, key, ext, want)
		}
	}
	for name, want := range map[string]bool{"a.png": false, ".a.png": true, "d/.a.png": true, ".d/a.png": true, "d./a.png": false} {
		if hiddenName(name) != want {
			t.Errorf("%s is hidden: %v", name, !want)
		}
	}
}

func TestMemberNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", maxMemberName)
	for name, want := range map[string]string{
		"a/b.png": "a/b.png", "/a": "a", "../../a": "a", "./a": "a", "": "unnamed", "/": "unnamed", "..": "unnamed",
		long: long, long + "x": long, long[:maxMemberName-1] + "é": long[:maxMemberName-1],
	} {
		if got := memberName(name); got != want {
			t.Errorf("%.40q becomes %.40q, want %.40q", name, got, want)
		}
	}
	for words, header := range map[string]*tar.Header{
		"":                        {Name: long, Size: 1},
		"stored as a sparse file": {Name: "a", Size: 1, Typeflag: tar.TypeGNUSparse},
		"sparse":                  {Name: "a", Size: 1, PAXRecords: map[string]string{"GNU.sparse.major": "1"}},
		"name exceeds 1024 bytes": {Name: long + "x", Size: 1},
		"name is not valid UTF-8": {Name: "a\xff", Size: 1},
		"empty member":            {Name: "a"},
	} {
		if got := memberProblem(header); !strings.Contains(got, words) || words == "" && got != "" {
			t.Errorf("problem %q, want %q", got, words)
		}
	}
}
