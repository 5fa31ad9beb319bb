package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/statistic"
)

var update = flag.Bool("update", false, "write the golden file of this package")

// readWandbLog reads the records of a log, block by block.
func readWandbLog(t *testing.T, log []byte) (records [][]byte) {
	t.Helper()
	if !bytes.HasPrefix(log, []byte(":W&B\xe1\xbe\x00")) {
		t.Fatalf("the log begins with %q", log[:7])
	}
	var record []byte
	begun := false
	for block := range (len(log) + 1<<15 - 1) >> 15 {
		rest := log[block<<15 : min((block+1)<<15, len(log))]
		if block == 0 {
			rest = rest[7:]
		}
		for len(rest) >= 7 {
			sum, n, kind := binary.LittleEndian.Uint32(rest), int(binary.LittleEndian.Uint16(rest[4:])), rest[6]
			if crc32.ChecksumIEEE(rest[6:7+n]) != sum {
				t.Fatalf("block %d: wrong sum", block)
			}
			if begun == (kind == 1 || kind == 2) {
				t.Fatalf("block %d: kind %d, a record has begun: %t", block, kind, begun)
			}
			begun = kind == 2 || kind == 3
			record = append(record, rest[7:7+n]...)
			if kind == 1 || kind == 4 {
				records = append(records, record)
				record = nil
			}
			rest = rest[7+n:]
		}
		if len(bytes.Trim(rest, "\x00")) > 0 {
			t.Fatalf("block %d ends with %q", block, rest)
		}
	}
	return records
}

// fields returns the contents of the fields of a message by number.
func fields(t *testing.T, message []byte) map[protowire.Number][][]byte {
	t.Helper()
	out := map[protowire.Number][][]byte{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		value := message[n : n+size]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		out[number] = append(out[number], value)
		message = message[n+size:]
	}
	return out
}

// TestExportWandb compares with a file that tools/tests/test_programs.py reads with the package of W&B, and reads it back.
func TestExportWandb(t *testing.T) {
	t.Parallel()
	run := exportedRun{
		id: strings.Repeat("0f", 16), name: "hdr.gamma0=4.ddiff", config: map[string]string{"task": "hdr", "sigma": "0.05", "prior": "inf"},
		params: map[string]string{"scale": "2"}, settings: map[string]string{"steps": "100", "sigma_rule": "full"},
		metrics: map[string]float64{"psnr": 25.5, "images": 6},
	}
	dir := filepath.Join(t.TempDir(), "wandb")
	to, err := newTree(dir)
	if err == nil {
		err = to.finish(exportWandb(to, []exportedRun{run}))
	}
	if err != nil {
		t.Fatal(err)
	}
	key := "offline-run-19700101_000000-" + run.id + "/run-" + run.id + ".wandb"
	log, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "run.wandb")
	if *update {
		if err := os.WriteFile(path, log, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(log, want) {
		t.Errorf("%s differs; read the difference, then run: go test ./cmd/ddiff/export -run %s -update\n%q", path, t.Name(), log)
	}

	records := readWandbLog(t, log)
	if len(records) != 5 {
		t.Fatalf("%d records, want header, run, history, summary and exit", len(records))
	}
	for i, number := range []protowire.Number{wandbRecordHeader, wandbRecordRun, wandbRecordHistory, wandbRecordSummary, wandbRecordExit} {
		f := fields(t, records[i])
		if len(f[number]) != 1 || string(f[wandbRecordNum][0]) != string([]byte{byte(i + 1)}) {
			t.Errorf("record %d: %v", i+1, f)
		}
	}
	items := func(list []byte) map[string]any {
		out := map[string]any{}
		for _, item := range fields(t, list)[wandbItems] {
			f := fields(t, item)
			var v any
			if err := json.Unmarshal(f[wandbItemValue][0], &v); err != nil {
				t.Fatal(err)
			}
			out[string(f[wandbItemKey][0])] = v
		}
		return out
	}
	header := fields(t, fields(t, records[1])[wandbRecordRun][0])
	config := items(header[wandbRunConfig][0])
	settings, _ := config["settings"].(map[string]any)
	if config["sigma"] != 0.05 || config["task"] != "hdr" || config["prior"] != "inf" || settings["steps"] != 100.0 || settings["sigma_rule"] != "full" {
		t.Errorf("configuration %v", config)
	}
	if summary := items(fields(t, records[3])[wandbRecordSummary][0]); len(summary) != 2 || summary["psnr"] != 25.5 || summary["images"] != 6.0 {
		t.Errorf("summary %v", summary)
	}
}

// TestWandbLogOfLongRecords: records that end at, before and beyond the border of a block.
func TestWandbLogOfLongRecords(t *testing.T) {
	t.Parallel()
	for size := 32<<10 - 40; size < 32<<10+20; size++ {
		records := [][]byte{bytes.Repeat([]byte{1}, size), {2}, bytes.Repeat([]byte{3}, 100_000), {4}}
		got := readWandbLog(t, wandbLog(records))
		if len(got) != len(records) {
			t.Fatalf("size %d: %d records, want %d", size, len(got), len(records))
		}
		for i := range got {
			if !bytes.Equal(got[i], records[i]) {
				t.Fatalf("size %d: record %d has %d bytes, want %d", size, i, len(got[i]), len(records[i]))
			}
		}
	}
}

// TestRunsHaveFurtherMetrics: a metric of ddiff score is in the runs, as it is in the table.
func TestRunsHaveFurtherMetrics(t *testing.T) {
	t.Parallel()
	r := aggregate.Row{PSNR: statistic.Estimate{N: 2, Mean: 20}, Metrics: map[string]statistic.Estimate{"lpips_vgg": {N: 2, Mean: 0.25}}}
	if got := rowMetrics(&r); got["psnr"] != 20 || got["lpips_vgg"] != 0.25 {
		t.Errorf("metrics %v", got)
	}
}
