package queue

import "testing"

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"a", "a.b", "größe >*", "=41", "A", "\x00\xff"} {
		f.Add(seed, "a=2Eb")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, errA := token("name", a)
		tb, errB := token("name", b)
		if errA != nil || errB != nil {
			return
		}
		for _, c := range []byte(ta) {
			if c <= ' ' || c >= 0x7f || c == '.' || c == '*' || c == '>' || c == '/' || c == '\\' {
				t.Fatalf("token(%q) = %q has %q", a, ta, c)
			}
		}
		if back, err := untoken(ta); err != nil || back != a {
			t.Fatalf("token(%q) = %q, which stands for %q, %v", a, ta, back, err)
		}
		if (a == b) != (ta == tb) {
			t.Fatalf("token(%q) = %q, token(%q) = %q", a, ta, b, tb)
		}
	})
}
