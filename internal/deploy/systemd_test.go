package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unit is a systemd unit of this repository.
type unit struct {
	name   string
	values map[string][]string // by key; a key may occur again
}

// first returns the first value of a key, or "".
func (u unit) first(key string) string {
	if len(u.values[key]) == 0 {
		return ""
	}
	return u.values[key][0]
}

// units reads all units.
func units(t *testing.T) []unit {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/systemd/*.service"))
	must(t, err)
	var all []unit
	for _, f := range files {
		u := unit{filepath.Base(f), map[string][]string{}}
		for line := range strings.Lines(read(t, "deploy/systemd/"+u.name)) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok && !strings.HasPrefix(key, "#") {
				u.values[key] = append(u.values[key], value)
			}
		}
		all = append(all, u)
	}
	if len(all) != 2 {
		t.Fatalf("%d units, want those of coordinator and worker", len(all))
	}
	return all
}

// systemd accepts the units without a complaint.
func TestUnitsVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze (Debian: systemd)")
	}
	dir := t.TempDir()
	verify := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "/usr/local/bin/ddiff", program)), 0o644))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		if err != nil {
			return err.Error() + "\n" + string(out)
		}
		return string(out)
	}
	for _, u := range units(t) {
		text := read(t, "deploy/systemd/"+u.name)
		if out := verify(u.name, text); out != "" {
			t.Errorf("%s: %s", u.name, out)
		}
		if out := verify("wrong-"+u.name, strings.Replace(text, "RestrictRealtime=", "RestrictRealTime=", 1)); !strings.Contains(out, "RestrictRealTime") {
			t.Errorf("systemd-analyze does not find an unknown setting: %q", out)
		}
	}
}

// The units restart after failures, except for wrong settings, give a worker more time than --grace, and restrict the process.
func TestUnitSettings(t *testing.T) {
	for _, u := range units(t) {
		for key, want := range map[string]string{
			"Restart": "on-failure", "KillSignal": "SIGTERM", "DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
			"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "StartLimitIntervalSec": "0", "EnvironmentFile": "/etc/ddiff/ddiff.env",
		} {
			if u.first(key) != want {
				t.Errorf("%s: %s=%v, want %q", u.name, key, u.values[key], want)
			}
		}
		// Each role has its own credentials, which only root can read.
		role := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(u.name, ".service"), "@"), "ddiff-")
		if got := u.first("LoadCredential"); got != "ddiff:/etc/ddiff/"+role {
			t.Errorf("%s loads the credentials %q", u.name, got)
		}
		if u.first("StateDirectory") == "" || u.first("CacheDirectory") == "" {
			t.Errorf("%s has no directories to write to", u.name)
		}
		// The program's cache is the folder ddiff in XDG_CACHE_HOME; the rest of the system is read-only.
		home, _, _ := strings.Cut(strings.TrimPrefix(u.first("Environment"), "XDG_CACHE_HOME="), " ")
		if cache := "%C/" + u.first("CacheDirectory"); home != cache && home+"/ddiff" != cache {
			t.Errorf("%s: the program writes to %s/ddiff, and may write to %s only", u.name, home, cache)
		}
		stop, err := time.ParseDuration(u.first("TimeoutStopSec") + "s")
		must(t, err)
		if strings.Contains(u.name, "worker") {
			if grace := flagValue(t, strings.Fields(u.first("ExecStart")), "--grace"); stop < grace+10*time.Second {
				t.Errorf("%s: TimeoutStopSec=%v, --grace %v", u.name, stop, grace)
			}
		}
		codes := strings.Fields(u.first("RestartPreventExitStatus"))
		for _, code := range codes {
			if meaning := exitMeaning(t, code); !strings.Contains(meaning, "wrong flag") && !strings.Contains(meaning, "ONNX Runtime") {
				t.Errorf("%s: no restart after exit code %s: %s", u.name, code, meaning)
			}
		}
		if len(codes) == 0 || codes[0] != "2" {
			t.Errorf("%s restarts after a wrong setting: %v", u.name, codes)
		}
	}
}

// exitMeaning returns the meaning of an exit code in docs/scripting.md.
func exitMeaning(t *testing.T, code string) string {
	t.Helper()
	for line := range strings.Lines(read(t, "docs/scripting.md")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && strings.TrimSpace(cells[1]) == code {
			return cells[2]
		}
	}
	t.Errorf("docs/scripting.md has no exit code %s", code)
	return ""
}

// environmentFile returns the variables of ddiff.env, with those that are commented out.
func environmentFile(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(read(t, "deploy/systemd/ddiff.env")) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "="); ok {
			all[name] = value
		}
	}
	return all
}

// Every variable of ddiff in ddiff.env is one that the program reads or that the units use.
func TestEnvironmentFile(t *testing.T) {
	help, err := exec.CommandContext(t.Context(), program, "coordinator", "--help").Output()
	must(t, err)
	known := string(help)
	for _, u := range units(t) {
		known += u.first("ExecStart")
	}
	for name := range environmentFile(t) {
		if strings.HasPrefix(name, "DDIFF_") && !strings.Contains(known, name) {
			t.Errorf("ddiff.env names %s, which nothing reads", name)
		}
	}
}
