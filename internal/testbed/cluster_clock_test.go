//go:build linux && amd64

package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain turns the test binary into a program that prints the time, for TestMoveClock.
// tellTheTime prints the wall clock and the monotonic clock until the process is killed.
func tellTheTime() {
	begin := time.Now()
	for {
		now := time.Now()
		fmt.Println(now.Unix(), now.Sub(begin).Milliseconds())
		time.Sleep(10 * time.Millisecond)
	}
}

func TestMoveClock(t *testing.T) {
	t.Parallel()
	p := NewProcess(t.TempDir(), "clock", nil, os.Args[0], "tell-the-time")
	must(t, p.Start())
	defer p.Kill()
	last := func() (wall time.Time, monotonic time.Duration) {
		must(t, p.waitLog(t.Context(), "\n", strings.Count(p.Log(), "\n")+2))
		lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
		seconds, ms, _ := strings.Cut(lines[len(lines)-2], " ") // the last line may be incomplete
		s, err := strconv.ParseInt(seconds, 10, 64)
		must(t, err)
		m, err := strconv.Atoi(ms)
		must(t, err)
		return time.Unix(s, 0), time.Duration(m) * time.Millisecond
	}
	_, before := last()
	begin := time.Now()
	for _, by := range []time.Duration{time.Hour, -20 * time.Minute, 0} {
		must(t, p.MoveClock(by))
		wall, monotonic := last()
		if off := wall.Sub(time.Now().Add(by)).Abs(); off > 5*time.Second {
			t.Errorf("moved by %v: the process is off by %v", by, off)
		}
		if passed := monotonic - before; passed < 0 || passed > time.Since(begin)+time.Second {
			t.Errorf("moved by %v: its monotonic clock advanced by %v in %v", by, passed, time.Since(begin))
		}
	}
}
