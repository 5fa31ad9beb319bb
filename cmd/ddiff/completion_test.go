package main_test

import (
	"net"
	"strings"
	"testing"
	"time"
)

// completed returns the words that the shell would offer for the end of a command line.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	e := ddiff(t, append([]string{"__complete"}, args...)...)
	wantCode(t, e, 0)
	var words []string
	for line := range strings.Lines(e.stdout) {
		if word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

// TestCompletion completes commands and the values of flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want string // words that are offered, all of them when it ends in a dot
	}{
		{"ru", "run runtime ."},
		{"run --task ", "all super_resolution hdr"},
		{"run --task hd", "hdr ."},
		{"run --task hdr,super", "hdr,super_resolution hdr,super_resolution_area ."},
		{"run --method diff_pnp_", "diff_pnp_admm diff_pnp_hqs ."},
		{"run --preset ", "natural gradient ffhq imagenet"},
		{"run --fit ", "center_crop resize pad ."},
		{"run --select m", "mean min_misfit ."},
		{"run --precision ", "float32 bfloat16 float16 auto"},
		{"submit --precision ", "float32 bfloat16 float16"},
		{"worker --precision ", "float32 bfloat16 float16"},
		{"pull --task hd", "hdr ."},
		{"run --prior ", "onnx tar ."}, // endings of files; shells offer folders, too
		{"replay --prior x", "onnx tar ."},
		{"submit --priority ", "high normal low ."},
		{"worker --log-level w", "warn ."},
	} {
		words := strings.Split(c.line, " ")
		got := completed(t, words...)
		want, only := strings.CutSuffix(c.want, " .")
		offered := map[string]bool{}
		for _, w := range got {
			offered[w] = true
		}
		for _, w := range strings.Fields(want) {
			if !offered[w] {
				t.Errorf("ddiff %s: %q lacks %s", c.line, got, w)
			}
		}
		if n := len(strings.Fields(want)); only && len(got) != n {
			t.Errorf("ddiff %s: %q, want %d words", c.line, got, n)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		e := ddiff(t, "completion", shell)
		wantCode(t, e, 0)
		if len(e.stdout) < 1000 {
			t.Errorf("the script for %s has %d bytes", shell, len(e.stdout))
		}
	}
}

// Without a server, or with a server that never answers, the completion of campaigns returns nothing within its deadline.
func TestCompletionWithoutServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	for _, address := range []string{"http://127.0.0.1:1", "http://" + silent.Addr().String()} {
		begin := time.Now()
		if got := completed(t, "status", "--server", address, ""); len(got) > 0 {
			t.Errorf("%s: %q", address, got)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("%s: the shell waits %v", address, d)
		}
	}
	if got := completed(t, "status", ""); len(got) > 0 {
		t.Errorf("without an address: %q", got)
	}
}
