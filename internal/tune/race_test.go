package tune_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/statistic"
	"ddiff/internal/tune"
)

// entrants makes n settings named s00, s01, ...
func entrants(n int) []tune.Entrant {
	var out []tune.Entrant
	for i := range n {
		out = append(out, tune.Entrant{Key: fmt.Sprintf("s%02d", i), Evaluations: 50})
	}
	return out
}

// run runs a race to its end and returns the number of values it asked for.
func run(t *testing.T, r *tune.Race, value func(key string, img tune.Image) float64) (asked int) {
	t.Helper()
	seen := map[string]bool{}
	for {
		keys, imgs := r.Next()
		if len(keys) == 0 {
			return asked
		}
		for _, k := range keys {
			for _, img := range imgs {
				if seen[k+img.SHA256] {
					t.Fatalf("the race asks twice for %s on %s", k, img.Name)
				}
				seen[k+img.SHA256] = true
				asked++
			}
		}
		r.Settle(value)
	}
}

// TestRaceKeepsTheWinner simulates races with known means: images differ by 3 dB, settings by 0.15 dB per rank, and the
// effect of a setting on an image by 0.3 dB.
func TestRaceKeepsTheWinner(t *testing.T) {
	t.Parallel()
	const races, settings, pictures = 400, 9, 24
	random := rand.New(rand.NewPCG(3, 4))
	kept, found, full, asked := 0, 0, 0, 0
	var regret float64
	for range races {
		values := map[string]float64{}
		imgs := images(pictures)
		winner := random.IntN(settings)
		loss := func(s int) float64 { return 0.15 * math.Abs(float64(s-winner)) }
		for _, img := range imgs {
			level := 25 + 3*random.NormFloat64()
			for s := range settings {
				values[fmt.Sprintf("s%02d", s)+img.SHA256] = level - loss(s) + 0.3*random.NormFloat64()
			}
		}
		r := tune.NewRace(entrants(settings), imgs)
		asked += run(t, r, func(key string, img tune.Image) float64 { return values[key+img.SHA256] })
		full += settings * pictures
		name := fmt.Sprintf("s%02d", winner)
		for _, s := range r.Standings() {
			if s.Key == name && s.Round == 0 {
				kept++
			}
			if s.State != tune.StateChosen {
				continue
			}
			if s.Key == name {
				found++
			}
			var chosen int
			if _, err := fmt.Sscanf(s.Key, "s%d", &chosen); err != nil {
				t.Fatal(err)
			}
			regret += loss(chosen) / races
		}
	}
	share := func(n int) float64 { return float64(n) / races }
	t.Logf("winner kept to the end in %.3f, chosen in %.3f of races; regret %.4f dB; %.2f of the values of a full grid",
		share(kept), share(found), regret, float64(asked)/float64(full))
	if !(share(kept) >= 0.95) {
		t.Errorf("the race kept the true winner in %.3f of the races, want 0.95", share(kept))
	}
	if !(share(found) >= 0.9) || !(regret <= 0.02) {
		t.Errorf("the race chose the true winner in %.3f of the races with a mean loss of %.3f dB", share(found), regret)
	}
	if asked > full*3/4 {
		t.Errorf("the race asked for %d of %d values, want at most three quarters", asked, full)
	}
}

// TestRaceOfEqualSettings: without a difference nothing is stopped, and the key decides, in any order of the settings.
func TestRaceOfEqualSettings(t *testing.T) {
	t.Parallel()
	list := entrants(6)
	list[4].Evaluations = 20
	for range 2 {
		r := tune.NewRace(list, images(9))
		if asked := run(t, r, func(string, tune.Image) float64 { return 30 }); asked != 6*9 {
			t.Errorf("the race asked for %d values, want all 54", asked)
		}
		var order []string
		for _, s := range r.Standings() {
			order = append(order, s.Key)
			if s.Round != 0 {
				t.Errorf("%s was stopped in round %d", s.Key, s.Round)
			}
		}
		if got := strings.Join(order, " "); got != "s04 s00 s01 s02 s03 s05" {
			t.Errorf("order %s, want the cheapest setting first and then the keys", got)
		}
		slices.Reverse(list)
	}
}

// TestRaceStopsAndStates checks the record of a stopped setting: its images, its difference and its interval.
func TestRaceStopsAndStates(t *testing.T) {
	t.Parallel()
	imgs := images(8)
	level := func(img tune.Image) float64 { return float64(slices.Index(imgs, img)) }
	r := tune.NewRace(entrants(4), imgs)
	run(t, r, func(key string, img tune.Image) float64 {
		loss := map[string]float64{"s00": 0, "s01": 0.01, "s02": 5, "s03": 9}[key]
		return 30 + level(img) - loss + 0.02*math.Mod(level(img), 2)*loss
	})
	s := r.Standings()
	if s[0].Key != "s00" || s[0].State != tune.StateChosen || s[0].Difference != nil || s[0].Images != 4 {
		t.Errorf("winner %+v", s[0])
	}
	for _, stopped := range s[2:] {
		if stopped.State != tune.StateStopped || stopped.Round != 1 || stopped.Images != 2 || stopped.NotRun != 6 {
			t.Errorf("standing %+v, want stopped after round 1 with two images", stopped)
			continue
		}
		d := stopped.Difference
		loss := map[string]float64{"s02": 5, "s03": 9}[stopped.Key]
		// Two differences -l and -0.98 l: the mean is -0.99 l, the half-width 12.706 * 0.01 l.
		if d == nil || d.N != 2 || !(math.Abs(d.Mean+0.99*loss) <= 1e-9) || !(math.Abs(*d.HalfWidth-12.7062047*0.01*loss) <= 1e-6) || stopped.Against != "s00" {
			t.Errorf("difference %+v against %s", d, stopped.Against)
		}
	}
}

// TestFailuresAreWorst: a setting that fails loses to all that do not, is named, and an image on which every setting fails is
// left out.
func TestFailuresAreWorst(t *testing.T) {
	t.Parallel()
	imgs := images(6)
	r := tune.NewRace(entrants(3), imgs)
	run(t, r, func(key string, img tune.Image) float64 {
		switch {
		case img == imgs[1]:
			return math.NaN()
		case key == "s02" && img == imgs[3]:
			return math.NaN()
		}
		return map[string]float64{"s00": 20, "s01": 21, "s02": 40}[key]
	})
	s := r.Standings()
	if s[0].Key != "s01" {
		t.Errorf("winner %+v, want s01", s[0])
	}
	if second := s[1]; second.Key != "s02" || second.State != tune.StateFailed || !slices.Equal(second.Failed, []string{imgs[3].Name}) {
		t.Errorf("standing %+v, want s02 stopped by its failure", second)
	}
	if u := r.Unusable(); len(u) != 1 || u[0] != imgs[1] {
		t.Errorf("unusable %v, want the second image", u)
	}

	none := tune.NewRace(entrants(2), images(5))
	run(t, none, func(string, tune.Image) float64 { return math.NaN() })
	if key, ok := none.Winner(); ok || len(none.Unusable()) != 5 {
		t.Errorf("winner %q of a race in which everything failed; unusable %v", key, none.Unusable())
	}
	for _, s := range none.Standings() {
		if s.State != tune.StateFailed {
			t.Errorf("standing %+v", s)
		}
	}

	// Where each setting fails on an image of its own, the one with the fewest failures wins.
	each := tune.NewRace(entrants(2), images(4))
	run(t, each, func(key string, img tune.Image) float64 {
		if i := slices.Index(images(4), img); key == "s00" && i < 2 || key == "s01" && i == 3 {
			return math.NaN()
		}
		return 10
	})
	if key, ok := each.Winner(); !ok || key != "s01" {
		t.Errorf("winner %q, want s01", key)
	}

	// s00 is better on every image that both restored, but lacks the easy one.
	easy := tune.NewRace(entrants(2), images(4))
	run(t, easy, func(key string, img tune.Image) float64 {
		i := slices.Index(images(4), img)
		if key == "s00" && i == 1 || key == "s01" && i == 0 {
			return math.NaN()
		}
		return map[string]float64{"s00": 21, "s01": 20}[key] + []float64{0, 60, 0, 0}[i]
	})
	if key, _ := easy.Winner(); key != "s00" {
		t.Errorf("winner %q, want s00", key)
	}
}

// TestRaceIsReproducible runs races of random values with the settings in other orders.
func TestRaceIsReproducible(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		values := map[string]float64{}
		value := func(key string, img tune.Image) float64 {
			k := key + img.SHA256
			if _, ok := values[k]; !ok {
				values[k] = math.Round(random.NormFloat64() * 4)
				if random.IntN(20) == 0 {
					values[k] = math.NaN()
				}
			}
			return values[k]
		}
		list, imgs := entrants(1+random.IntN(12)), images(1+random.IntN(20))
		first := tune.NewRace(list, imgs)
		run(t, first, value)
		random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		second := tune.NewRace(list, imgs)
		run(t, second, value)
		if a, b := fmt.Sprint(text(first)), fmt.Sprint(text(second)); a != b {
			t.Fatalf("another order of settings gives another race:\n%s\n%s", a, b)
		}
		chosen := 0
		for _, s := range first.Standings() {
			if s.Images+s.NotRun+len(first.Unusable()) != len(imgs) {
				t.Fatalf("standing %+v with %d unusable of %d images", s, len(first.Unusable()), len(imgs))
			}
			if s.State == tune.StateChosen {
				chosen++
			}
		}
		if _, ok := first.Winner(); ok != (chosen == 1) {
			t.Fatalf("%d settings are chosen", chosen)
		}
	}
}

// text is the outcome of a race with the values of pointers.
func text(r *tune.Race) (out []string) {
	for _, s := range r.Standings() {
		half := func(e *statistic.Estimate) string {
			if e == nil || e.HalfWidth == nil {
				return "-"
			}
			return fmt.Sprint(e.N, e.Mean, *e.HalfWidth)
		}
		out = append(out, fmt.Sprint(s.Key, s.State, s.Round, s.Images, s.NotRun, half(&s.Value), half(s.Difference), s.Against, s.Failed))
	}
	return append(out, fmt.Sprint(r.Unusable(), r.Rounds()))
}

func TestRaceOfOneSetting(t *testing.T) {
	t.Parallel()
	one := tune.NewRace(entrants(1), images(3))
	if keys, _ := one.Next(); keys != nil {
		t.Errorf("a race of one setting asks for %v", keys)
	}
	if key, ok := one.Winner(); !ok || key != "s00" {
		t.Errorf("a race of one setting has the winner %q", key)
	}
}
