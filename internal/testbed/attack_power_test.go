package testbed

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestAttackNATSPowerLoss gives the files of the only NATS server the states that a loss of power may leave while a campaign runs: a copy that
// was made while the server wrote, newest messages that are torn, and none of the newest. The programs run on.
func TestAttackNATSPowerLoss(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	d := startDisaster(t, Options{Directory: true})
	server := d.NATS.Servers[0]
	torn := filepath.Join(t.TempDir(), "torn")
	// Files that end meanwhile are no error.
	_ = exec.CommandContext(t.Context(), "cp", "-r", d.streams(), torn).Run()
	settled(t, d.Cluster, d.id, 20)
	d.emptyNATS(torn)
	random := rand.New(rand.NewPCG(1, 1))
	for i, least := range []int{30, 45} {
		settled(t, d.Cluster, d.id, least)
		server.Kill()
		for _, file := range newestBlocks(t, d.streams()) {
			info, err := os.Stat(file)
			must(t, err)
			size := int64(0)
			if i == 0 && info.Size() > 0 {
				size = random.Int64N(info.Size())
			}
			must(t, os.Truncate(file, size))
		}
		must(t, server.Start())
		must(t, d.NATS.Ready(t.Context(), 0))
	}
	for end := time.Now().Add(commandLimit); ask(t, d.Cluster, "status", d.id).code != 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) { // the leader returns it from the store
			t.Fatalf("the campaign is not on the board again:\n%s", tail(d.coordinator.Log()))
		}
	}
	d.wantBoth()
}

// newestBlocks returns the newest file of messages of each stream.
func newestBlocks(t *testing.T, dir string) []string {
	t.Helper()
	newest := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if folder := filepath.Dir(path); filepath.Ext(path) == ".blk" {
			if old := newest[folder]; len(path) > len(old) || len(path) == len(old) && path > old {
				newest[folder] = path
			}
		}
		return err
	}))
	var all []string
	for _, file := range newest {
		all = append(all, file)
	}
	if len(all) < 3 {
		t.Fatalf("files of %d streams in %s", len(all), dir)
	}
	return all
}
