package manifest

import "testing"

func TestSkips(t *testing.T) {
	t.Parallel()
	var s Skips
	if got := s.Report(false) + s.Report(true); got != "" {
		t.Errorf("nothing skipped: %q", got)
	}
	for _, path := range []string{"/d/a.txt", "tar+s3://b/t.tar#b.json", "/d/c\nd", "/d/e", "https://h/f?signature=x"} {
		s.Add(Skip{path, SkipKind})
	}
	s.Add(Skip{"/d/.g.png", SkipHidden})
	const want = "skipped 5: not an image: a.txt, b.json, c\uFFFDd and 2 more\nskipped 1: hidden: .g.png\n"
	if got := s.Report(false); got != want {
		t.Errorf("got %q", got)
	}
	if got := s.Report(true); got != "skipped 6\n" {
		t.Errorf("brief: %q", got)
	}
}

// TestNameOf: each derived name is valid.
func TestNameOf(t *testing.T) {
	t.Parallel()
	long := make([]byte, 150)
	for i := range long {
		long[i] = 'x'
	}
	for path, want := range map[string]string{
		"/d/photos": "photos", "/d/list.csv": "list", "/d/.hid": ".hid", "/d/a\nb.png": "a\uFFFDb", "/": "/", "dir:/d/x": "x",
		"s3://b/in/?region=us-east-1": "in", "s3://b/in?region=us-east-1": "in", "s3://b": "b", "s3://b/?path_style=true": "b",
		"https://h/d/list.parquet?sig=a/b": "list", "/d/" + string(long): string(long[:100]),
	} {
		got := NameOf(path)
		if got != want || checkName(got) != nil {
			t.Errorf("%q: %q, want %q; %v", path, got, want, checkName(got))
		}
	}
}
