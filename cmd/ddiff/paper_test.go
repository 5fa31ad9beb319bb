package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestPaperCampaigns runs each campaign of examples/paper with the bundled prior on a bundled photograph, and compares it
// with the published figures beside it, if there are any. The report must say that they are not comparable.
func TestPaperCampaigns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "examples", "paper")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	must(t, err)
	files = slices.DeleteFunc(files, func(file string) bool {
		return regexp.MustCompile("^(table3|nonlinear)_").MatchString(filepath.Base(file))
	})
	known := map[string]struct {
		items     int
		published bool
		set       []string
	}{
		// This one runs all tasks.
		"table1_ffhq":     {items: 2 * (7 + 5), published: true, set: []string{"--method", "ddiff,daps", "--steps", "2"}},
		"table1_imagenet": {items: 1 + 5, published: true, set: []string{"--task", "hdr,phase_retrieval", "--method", "ddiff", "--steps", "2"}},
		"ablation":        {items: 4 * (1 + 5), published: true, set: []string{"--task", "hdr,phase_retrieval", "--steps", "2"}},
		// The sweeps stay, with fewer values.
		"noise_robustness": {items: 2 * (1 + 5), set: []string{"--set", "sigma=0.05,0.3", "--steps", "2"}},
		"time_quality":     {items: 2 * (1 + 5), set: []string{"--set", "steps=2,3"}},
	}
	if len(files) != len(known) {
		t.Errorf("%d campaigns in %s, want %d", len(files), dir, len(known))
	}
	photograph := photographs(t, "coffee")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, out := known[name], filepath.Join(t.TempDir(), "out")
			args := []string{"run", file, "--images", photograph, "--prior", "bundled", "--size", "32", "--threads", "1", "--out", out}
			wantCounts(t, ddiff(t, append(args, want.set...)...), want.items, 0, 0, out)
			if !want.published {
				return
			}
			figures := filepath.Join(dir, name+".published.csv")
			e := ddiff(t, "report", out, "--select", "best_psnr", "--published", figures)
			wantCode(t, e, 0)
			for _, pattern := range []string{
				`(?m)^NOT COMPARABLE, because of images, size, steps, metrics, prior\. Ours: images 1, size 32x32, .* prior bundled\. Theirs: .*FFHQ|ImageNet`,
				`(?m)^phase_retrieval +ddiff .*\d\.\d\d\* +\d\d\.\d\d.* [+-]\d+\.\d\d\* `,
			} {
				if !regexp.MustCompile(pattern).MatchString(e.stdout) {
					t.Errorf("no line %s\n%v", pattern, e)
				}
			}
			for format, text := range map[string]string{"md": "| hdr | ddiff | 1 |", "latex": "hdr & ddiff & 1 &"} {
				if e := ddiff(t, "report", out, "--published", figures, "--format", format); e.code != 0 || !strings.Contains(e.stdout, text) {
					t.Errorf("%s lacks %q\n%v", format, text, e)
				}
			}
			if name == "table1_ffhq" {
				comparePaperMetrics(t, out, figures)
				if !regexp.MustCompile(`(?m)^hdr +daps +1 +\S+ +27\.39 ±0\.56 +[+-]\d`).MatchString(e.stdout) {
					t.Errorf("daps is not compared with its published figures\n%v", e)
				}
				page := filepath.Join(t.TempDir(), "page")
				wantCode(t, ddiff(t, "report", out, "--published", figures, "--format", "html", "--out", page), 0)
				if text := string(read(t, filepath.Join(page, "index.html"))); !strings.Contains(text, "NOT COMPARABLE") || !strings.Contains(text, "reddiff") {
					t.Error("the page lacks the published figures")
				}
			}
		})
	}
}

// comparePaperMetrics computes the metrics of the paper's code from the unclipped images: each figure is then compared with one of its kind.
func comparePaperMetrics(t *testing.T, out, figures string) {
	t.Helper()
	network := filepath.Join("..", "..", "internal", "restore", "metric", "testdata", "lpips_alex.onnx")
	e := ddiff(t, "score", out, "--metric", "psnr@reference_range,ssim@window5,lpips@unclipped:"+network)
	if want := regexp.MustCompile(`^metric=psnr@reference_range items=24 scored=24 .*\nmetric=ssim@window5 items=24 scored=24 .*\nmetric=lpips_alex@1_unclipped:[0-9a-f]{8} items=24 scored=24 `); e.code != 0 ||
		!want.MatchString(e.stdout) {
		t.Errorf("score: want %s\n%v", want, e)
	}
	e = ddiff(t, "report", out, "--select", "best_psnr", "--metric-version", "psnr@reference_range,ssim@window5", "--published", figures)
	if e.code != 0 || !strings.Contains(e.stdout, "NOT COMPARABLE, because of images, size, steps, prior. ") ||
		!strings.Contains(e.stdout, "metrics lpips_alex@1_unclipped psnr@reference_range ssim@window5") {
		t.Errorf("the report does not compare with the paper's metrics\n%v", e)
	}
	if !regexp.MustCompile(`(?m)^phase_retrieval +ddiff +1 +\d+\.\d\d\* +29\.94 .* \d+\.\d{3}\* +0\.\d+ `).MatchString(e.stdout) {
		t.Errorf("no oracle mark at the figures of phase retrieval\n%v", e)
	}
}

// TestPaperNonlinear runs the paper's nonlinear deblurring with a small blur in place of BKSE, and a code of its shape.
func TestPaperNonlinear(t *testing.T) {
	skipLong(t)
	t.Parallel()
	examples, dir := filepath.Join("..", "..", "examples", "paper"), t.TempDir()
	code, err := raster.EncodeNPY([]int{4, 2, 2}, slices.Repeat([]float32{0.5, -1}, 8))
	must(t, err)
	for name, data := range map[string][]byte{"data/bkse.onnx": read(t, learnedBlur), "protocol/blur_code.npy": code} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		write(t, filepath.Join(dir, name), data)
	}
	for _, name := range []string{"nonlinear_ffhq", "nonlinear_imagenet"} {
		write(t, filepath.Join(dir, name+".yaml"), read(t, filepath.Join(examples, name+".yaml")))
		out := filepath.Join(dir, "out-"+name)
		args := []string{"run", filepath.Join(dir, name+".yaml"), "--images", photographs(t, "coffee"), "--prior", "bundled", "--steps", "2", "--threads", "1", "--out", out}
		wantCounts(t, ddiff(t, args...), 1, 0, 0, out)
		e := ddiff(t, "report", out, "--published", filepath.Join(examples, name+".published.csv"))
		if e.code != 0 || !regexp.MustCompile(`(?m)^nonlinear_bkse +ddiff +1 +\S+ +(31\.48|29\.68) `).MatchString(e.stdout) {
			t.Errorf("%s is not compared with its published figures\n%v", name, e)
		}
	}
}

// TestLatentCampaigns: the files of Table 3 are refused in one line per method with a prior that works on pixels, and their items are
// complete with a latent one.
func TestLatentCampaigns(t *testing.T) {
	skipLong(t)
	t.Parallel()
	bundle := t.TempDir()
	writeLatentPrior(t, bundle)
	for name, tasks := range map[string][]string{"ffhq": nil, "imagenet": {"--task", "motion_deblur"}} {
		file := filepath.Join("..", "..", "examples", "paper", "table3_"+name+".yaml")
		e := ddiff(t, "run", file, "--dry-run", "--prior", "bundled")
		wantCode(t, e, 2)
		wantMessage(t, e, file, `methods[0]: method latent_ddiff needs a latent prior, but `)
		if n := strings.Count(e.stderr, "\n"); n != 4 {
			t.Errorf("%d lines, want one for each method\n%v", n, e)
		}
		out := filepath.Join(t.TempDir(), "out")
		args := []string{"run", file, "--images", photographs(t, "coffee"), "--prior", bundle, "--size", "32", "--steps", "2", "--threads", "1", "--out", out}
		items := 5*4 + 2*3
		if len(tasks) > 0 {
			items = 4
		}
		wantCounts(t, ddiff(t, append(args, tasks...)...), items, 0, 0, out)
		figures := filepath.Join("..", "..", "examples", "paper", "table3_"+name+".published.csv")
		e = ddiff(t, "report", out, "--published", figures)
		wantCode(t, e, 0)
		for _, method := range []string{"latent_ddiff", "latent_daps", "psld", "resample"} {
			if !strings.Contains(e.stdout, "NOT COMPARABLE") || !regexp.MustCompile(`(?m)^motion_deblur +`+method+` +1 +\S+ +\d+\.\d+ +[+-]\d`).MatchString(e.stdout) {
				t.Errorf("the report does not compare %s with its published figures\n%v", method, e)
			}
		}
		if rows := strings.Count(string(read(t, figures)), "\n3,"); rows != 26 {
			t.Errorf("%s: %d published rows, want 26", name, rows)
		}
	}
}

// A method that does not work in the prior's space, or that has no settings for a task, is refused in one line.
func TestLatentSettings(t *testing.T) {
	skipLong(t)
	t.Parallel()
	bundle, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	writeLatentPrior(t, bundle)
	common := []string{"run", "--images", photographs(t, "coffee"), "--prior", bundle, "--size", "32", "--steps", "2", "--threads", "1", "--out", out}
	wantRefusals(t, common, []refusal{
		{[]string{"--task", "hdr"}, 2, "methods[0]: method ddiff works on pixels, but the prior haar on latents; use latent_ddiff"},
		{[]string{"--task", "hdr", "--method", "latent_ddiff"}, 2,
			"gamma0: preset natural has no value for method latent_ddiff and task hdr: set it under solver, or choose a preset that has one: ffhq, imagenet"},
		{[]string{"--task", "phase_retrieval", "--method", "latent_ddiff", "--preset", "ffhq"}, 2,
			"gamma0: preset ffhq has no value for method latent_ddiff and task phase_retrieval: no preset has one; set it under solver"},
	})
	for _, mode := range []string{"latent_dc", "pixel_dc"} {
		args := append(slices.Clone(common), "--task", "phase_retrieval", "--method", "latent_ddiff", "--set", "gamma0=20", "--set", "mode="+mode)
		wantCounts(t, ddiff(t, args...), 1, 0, 0, out)
	}
}

func TestPublishedRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.csv")
	write(t, broken, []byte("task,method,psnr\nhdr,ddiff,high\n"))
	for _, tt := range []struct{ file, format, want string }{
		{filepath.Join(dir, "missing.csv"), "text", "missing.csv: no such file"},
		{broken, "text", `--published: published figures: broken.csv: line 2: psnr: "high" is not a number`},
		{broken, "parquet", "--format parquet has the results alone"},
		{broken, "csv", "--format csv has the results alone"},
		{dir, "text", "not a regular file but a directory"},
	} {
		wantRefusal(t, ddiff(t, "report", dir, "--published", tt.file, "--format", tt.format, "--out", filepath.Join(dir, "table")), 2, tt.want)
	}
	// Images replace those of a campaign file, and an error about them names the flag.
	wantRefusal(t, ddiff(t, "run", filepath.Join("..", "..", "examples", "demo.yaml"), "--images", filepath.Join(dir, "nowhere"), "--dry-run"), 2, "nowhere")
}
