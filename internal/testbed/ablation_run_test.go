package testbed

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAblation runs a small grid through the program, and again: the second run solves nothing.
func TestAblation(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := ablationOptions{
		images: filepath.Join(root, "examples", "images"), out: filepath.Join(t.TempDir(), "out"), program: program,
		size: 32, steps: 2, limit: 3, threads: 1, tasks: []string{"hdr"}, gamma0: []string{"3", "8", "20"}, knobs: 2, stdout: &out,
	}
	if err := runAblation(t.Context(), root, o); err != nil {
		t.Fatal(err)
	}
	first := out.String()
	for _, want := range []string{
		"3 photographs, 32x32, 2 network evaluations, 9 cells per task and method; settings chosen on the other 2 photographs\n",
		"| hdr | ddiff_hqs | ", "ddiff > ddiff_hqs > diff_pnp_admm > diff_pnp_hqs | ", " of=1\n",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	out.Reset()
	o.knobs = 1 // fewer cells of the same output
	if err := runAblation(t.Context(), root, o); err != nil || !strings.Contains(out.String(), ", 3 cells per task") {
		t.Errorf("gamma0 alone: %v\n%s", err, out.String())
	}
}

// table of results: the PSNR of each method for each gamma0 and photograph.
func ablationTable(psnr func(method string, gamma0, image int) string) string {
	var b strings.Builder
	b.WriteString("image,task,size,method,settings,outcome,reason,psnr\n")
	for _, method := range ablationMethods() {
		for k, g := range []string{"3", "8", "20"} {
			settings := "steps=5;gamma0=" + g + ";a=3.3;b=1"
			if strings.HasPrefix(method, "ddiff") {
				settings += ";t0=300;sigma_rule=ddpm"
			}
			for image := range 3 {
				fmt.Fprintf(&b, "%d,hdr,32x32,%s,%s,done,,%s\n", image, method, settings, psnr(method, k, image))
			}
		}
	}
	return b.String()
}

// A photograph's own figures never choose its settings, and a method is not measured with the settings of another one.
func TestAblationChoosesOnOtherPhotographs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := ablationOptions{size: 32, steps: 5, tasks: []string{"hdr"}, gamma0: []string{"3", "8", "20"}, knobs: 1, stdout: &out}
	scores, err := o.read(strings.NewReader(ablationTable(func(method string, gamma0, image int) string {
		switch {
		case method == "ddiff" && gamma0 == 1:
			return "20"
		case method == "ddiff" && gamma0 == image: // the best cell of photographs 0 and 2 is bad for the others
			return "29"
		case method == "diff_pnp_hqs" && gamma0 == 2:
			return "25"
		}
		return "10"
	})))
	if err != nil {
		t.Fatal(err)
	}
	results := o.test(scores, "hdr")
	if got := results[0]; !slices.Equal(got.psnr, []float64{20, 20, 20}) || !slices.Equal(got.cells, []int{1, 1, 1}) {
		t.Errorf("ddiff: %+v, want the cell that suits the other photographs", got)
	}
	if got := results[3]; !slices.Equal(got.psnr, []float64{25, 25, 25}) || !slices.Equal(got.plain, []float64{10, 10, 10}) {
		t.Errorf("diff_pnp_hqs: %+v, want 25 tuned and 10 with the settings of ddiff", got)
	}
	places := map[string][]string{"hdr": {"ddiff", "ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs"}}
	if err := o.write(scores, places); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| hdr | diff_pnp_hqs | 25.00 ± 0.00 | -5.00 ± 0.00 | 10.00 | gamma0=20 b=1 (3) |",
		"| hdr | diff_pnp_hqs > ddiff > ddiff_hqs > diff_pnp_admm | ddiff > ddiff_hqs > diff_pnp_admm > diff_pnp_hqs | no |",
		"- hdr, diff_pnp_hqs: gamma0 at the border of the grid\n", "first_place_as_published=0 of=1\ntasks_in_order=0 of=1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	places["hdr"] = ranking(results)
	out.Reset()
	if err := o.write(scores, places); err != nil || !strings.HasSuffix(out.String(), "\ntasks_in_order=1 of=1\n") {
		t.Errorf("the same order: %v\n%s", err, out.String())
	}
}

func TestAblationRefusesAnIncompleteGrid(t *testing.T) {
	t.Parallel()
	o := ablationOptions{size: 32, steps: 5, tasks: []string{"hdr"}, gamma0: []string{"3", "8", "20"}, knobs: 1}
	all := ablationTable(func(string, int, int) string { return "20" })
	for text, want := range map[string]string{
		strings.Replace(all, "2,hdr,32x32,ddiff,steps=5;gamma0=8;", "2,hdr,64x64,ddiff,steps=5;gamma0=8;", 1): "hdr, ddiff, gamma0=8 b=1 sigma_rule=ddpm t0=300: 2 of 3 photographs",
		strings.Replace(all, ",done,,20\n", ",failed,no file,\n", 1):                                          "failed no file",
		"image,task\n": "hdr, ddiff, gamma0=3 b=1 sigma_rule=ddpm t0=300: 0 of 0 photographs",
	} {
		if _, err := o.read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The grids are fair: every method has as many cells as every other one.
func TestAblationCellsAreEqualInNumber(t *testing.T) {
	t.Parallel()
	for knobs, want := range map[int]int{1: 5, 2: 15} {
		o := ablationOptions{gamma0: []string{"3", "8", "20", "50", "125"}, knobs: knobs}
		for _, task := range ablationTasks() {
			for _, method := range ablationMethods() {
				if n := len(o.cells(task, method)); n != want {
					t.Errorf("%s, %s: %d cells, want %d", task, method, n, want)
				}
				for at := range o.cells(task, "ddiff") {
					if like := o.like(task, method, at); like < 0 || o.cells(task, method)[like][0] != o.cells(task, "ddiff")[at][0] {
						t.Errorf("%s, %s: no cell like %v of ddiff", task, method, o.cells(task, "ddiff")[at])
					}
				}
			}
		}
	}
}
