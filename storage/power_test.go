package storage_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ddiff/storage"
)

// TestAttackPowerLoss records the system calls of writers to a directory store with strace, and computes what a disk may have after a loss
// of power at any time: POSIX promises the bytes of a file after its fsync only, and the names in a folder after an fsync of the folder. In each
// such state all that was acknowledged is whole, and nothing that is half written can be read.
func TestAttackPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("records a process with strace: make test-all")
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: run make attacks")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	root := filepath.Join(dir, "store")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-s", "200", "-o", log,
		"-e", "trace=openat,mkdirat,write,fsync,renameat,renameat2,linkat,unlinkat",
		os.Args[0], "-test.run", "^TestPowerLossWriters$")
	cmd.Env = append(os.Environ(), "DDIFF_POWER_STORE="+root)
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("ptrace")) {
		t.Skipf("no process can be traced here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk(root)
	states := 0
	for line := range strings.Lines(string(text)) {
		if !d.apply(line) {
			continue
		}
		for kind := range 4 {
			at := filepath.Join(dir, "state")
			d.write(t, d.root, at, kind)
			d.check(t, at)
			states++
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("after %s", line)
			}
		}
	}
	t.Logf("acknowledgements=%d states=%d", d.acknowledged, states)
	if d.acknowledged != 100 {
		t.Fatalf("the log has %d acknowledgements:\n%.2000s", d.acknowledged, text)
	}
}

// TestPowerLossWriters writes to a store for TestAttackPowerLoss: several goroutines in common folders, each with keys of its own.
func TestPowerLossWriters(t *testing.T) {
	root := os.Getenv("DDIFF_POWER_STORE")
	if root == "" {
		t.Skip("only for TestAttackPowerLoss")
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var stores [4]*storage.Dir
	for i := range stores {
		if stores[i], err = storage.NewDir(root); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 5 {
		var all sync.WaitGroup
		for writer, store := range stores {
			// Another process makes a folder, and has not synced it.
			if err := folder.MkdirAll(fmt.Sprintf("round-%d/own-%d", round, writer), 0o755); err != nil {
				t.Fatal(err)
			}
			all.Go(func() { writeObjects(t, store, round, writer) })
		}
		all.Wait()
	}
}

// writeObjects writes objects to new folders, of which one is shared, and says when.
func writeObjects(t *testing.T, store *storage.Dir, round, writer int) {
	shared, own := fmt.Sprintf("round-%d/shared/of-%d.txt", round, writer), fmt.Sprintf("round-%d/own-%d/object.txt", round, writer)
	for i, step := range [][2]string{{shared, "create"}, {shared, "put"}, {own, "put"}, {own, "delete"}, {own, "create"}} {
		key, verb, tag := step[0], step[1], fmt.Sprintf("%d-%d-%d", writer, round, i)
		say := func(when string) { fmt.Fprintf(os.Stdout, "%s %s %s %s\n", when, verb, key, tag) }
		say("begin")
		var err error
		switch verb {
		case "create":
			err = store.Create(t.Context(), key, content(tag))
		case "put":
			err = store.Put(t.Context(), key, content(tag))
		case "delete":
			err = store.Delete(t.Context(), key)
		}
		if err != nil {
			t.Error(err)
		}
		say("end")
	}
}

// content is an object that names itself.
func content(tag string) []byte { return bytes.Repeat([]byte(tag+"\n"), 40) }

// disk is the model of a disk with a cache. The names of a folder, and the bytes of a file, are on the disk when they are synced.
type disk struct {
	path         string // of the store
	root         *node
	live         map[string]*node // what processes see
	open         map[string]int   // begun calls of threads: the number of changes that an fsync covers
	begun        map[string]string
	wanted       map[string]object
	acknowledged int
	random       *rand.Rand
}

// node is a file or a folder.
type node struct {
	file    bool
	data    []byte
	synced  int              // bytes of the file on the disk
	entries map[string]*node // of the folder on the disk
	changes []change         // of the folder, not on the disk
	done    int              // changes that were moved to entries
}

type change struct {
	name string
	to   *node // nil: removed
}

// object is what a key may have: the last acknowledged content, "" for none, or one of a call that has begun.
type object struct {
	last, begun string
	deleting    bool
}

func newDisk(path string) *disk {
	root := &node{entries: map[string]*node{}}
	return &disk{
		path: path, root: root, live: map[string]*node{path: root}, open: map[string]int{}, begun: map[string]string{},
		wanted: map[string]object{}, random: rand.New(rand.NewPCG(1, 2)),
	}
}

var (
	systemCalls = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (-?\d+)(.*)$`)
	pending     = regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumed     = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	places      = regexp.MustCompile(`\d+<([^>]*)>, "([^"]*)"`)
	file        = regexp.MustCompile(`^\d+<([^>]*)>`)
	messages    = regexp.MustCompile(`"(begin|end) (\w+) (\S+) (\S+)\\n"`)
)

// apply applies a line of the log of strace. It reports whether the line is an acknowledgement, after which the states differ.
func (d *disk) apply(line string) bool {
	line = strings.TrimRight(line, "\n")
	if m := pending.FindStringSubmatch(line); m != nil {
		d.begun[m[1]] = m[3]
		d.begin(m[1], m[2], m[3])
		return false
	}
	if m := resumed.FindStringSubmatch(line); m != nil {
		line = fmt.Sprintf("%s %s(%s%s", m[1], m[2], d.begun[m[1]], m[3])
	} else if m := systemCalls.FindStringSubmatch(line); m != nil {
		d.begin(m[1], m[2], m[3])
	}
	m := systemCalls.FindStringSubmatch(line)
	if len(m) == 0 || strings.HasPrefix(m[4], "-") {
		return false
	}
	return d.call(m[1], m[2], m[3], m[4])
}

// begin notes what an fsync covers.
func (d *disk) begin(thread, call, args string) {
	if m := file.FindStringSubmatch(args); call == "fsync" && m != nil && d.live[m[1]] != nil {
		n := d.live[m[1]]
		d.open[thread] = n.done + len(n.changes)
	}
}

func (d *disk) call(thread, call, args, result string) bool {
	if m := messages.FindStringSubmatch(args); call == "write" && m != nil {
		return d.message(m[1], m[2], m[3], m[4])
	}
	if !strings.Contains(args, d.path) {
		return false
	}
	at := places.FindAllStringSubmatch(args, -1)
	switch call {
	case "openat":
		if strings.Contains(args, "O_CREAT") {
			d.set(at[0], &node{file: true})
		}
	case "mkdirat":
		n := d.live[path.Join(at[0][1], at[0][2])]
		if n == nil {
			n = &node{entries: map[string]*node{}}
		}
		d.set(at[0], n)
	case "write":
		n := d.live[file.FindStringSubmatch(args)[1]]
		size, _ := strconv.Atoi(result)
		tag, _, _ := strings.Cut(strings.SplitN(args, `"`, 3)[1], `\n`)
		n.data = append(n.data, content(tag)[len(n.data):][:size]...)
	case "fsync":
		d.sync(thread, d.live[file.FindStringSubmatch(args)[1]])
	case "renameat", "renameat2":
		d.set(at[1], d.live[path.Join(at[0][1], at[0][2])])
		d.set(at[0], nil)
	case "linkat":
		d.set(at[1], d.live[path.Join(at[0][1], at[0][2])])
	case "unlinkat":
		d.set(at[0], nil)
	default:
		return false
	}
	return false
}

// set gives a name of a folder another meaning.
func (d *disk) set(place []string, to *node) {
	folder := d.live[place[1]]
	if folder == nil { // the end of the call that makes it is still to come
		folder = &node{entries: map[string]*node{}}
		d.live[place[1]] = folder
	}
	folder.changes = append(folder.changes, change{place[2], to})
	whole := path.Join(place[1], place[2])
	if to == nil {
		delete(d.live, whole)
		return
	}
	d.live[whole] = to
}

// sync ends an fsync.
func (d *disk) sync(thread string, n *node) {
	n.synced = len(n.data)
	for n.done < d.open[thread] && len(n.changes) > 0 {
		set(n.entries, n.changes[0])
		n.changes = n.changes[1:]
		n.done++
	}
}

func set(entries map[string]*node, c change) {
	if c.to == nil {
		delete(entries, c.name)
		return
	}
	entries[c.name] = c.to
}

// message notes what a writer says about a key.
func (d *disk) message(when, verb, key, tag string) bool {
	w := d.wanted[key]
	switch {
	case when == "begin" && verb == "delete":
		w.deleting = true
	case when == "begin":
		w.begun = tag
	case verb == "delete":
		w = object{}
	default:
		w = object{last: tag}
	}
	d.wanted[key] = w
	if when == "end" {
		d.acknowledged++
	}
	return when == "end"
}

// The kinds of states after a loss of power: nothing is written that was not synced; all names and no bytes; all names and zeros for bytes;
// anything.
const (
	least = iota
	names
	zeros
	anything
)

// write writes a state of a folder.
func (d *disk) write(t *testing.T, n *node, at string, kind int) {
	t.Helper()
	entries := maps.Clone(n.entries)
	for _, c := range n.changes {
		if kind == names || kind == zeros || kind == anything && d.random.IntN(2) == 0 {
			set(entries, c)
		}
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, child := range entries {
		whole := filepath.Join(at, name)
		if !child.file {
			d.write(t, child, whole, kind)
			continue
		}
		data := slices.Clone(child.data)
		switch kind {
		case least, names:
			data = data[:child.synced]
		case zeros:
			clear(data[child.synced:])
		case anything:
			data = data[:child.synced+d.random.IntN(len(data)-child.synced+1)]
		}
		if err := os.WriteFile(whole, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// check opens a state as a store and compares it with what was acknowledged.
func (d *disk) check(t *testing.T, at string) {
	t.Helper()
	store, err := storage.NewDir(at)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for info, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := store.Get(t.Context(), info.Key)
		if err != nil {
			t.Fatal(err)
		}
		tag, _, _ := strings.Cut(string(data), "\n")
		if !bytes.Equal(data, content(tag)) || tag == "" {
			t.Errorf("%s is half written: %d bytes, %.40q", info.Key, len(data), data)
		}
		found[info.Key] = tag
	}
	for key, want := range d.wanted {
		got := found[key]
		if got == want.last || got != "" && got == want.begun || got == "" && want.deleting {
			continue
		}
		t.Errorf("%s has %q, want %q or %q, deleting %v", key, got, want.last, want.begun, want.deleting)
	}
}
