package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// exportWandb writes runs as offline directories of Weights & Biases, which `wandb sync` uploads:
// offline-run-DATE_TIME-ID/run-ID.wandb, a log of Record messages. The field numbers are those of wandb_internal.proto.
func exportWandb(to *tree, runs []exportedRun) error {
	for _, r := range runs {
		records, err := wandbRecords(r)
		if err != nil {
			return fmt.Errorf("encode run %s: %w", r.name, err)
		}
		// The time is 0: a report does not depend on the clock.
		key := "offline-run-19700101_000000-" + r.id + "/run-" + r.id + ".wandb"
		if err := to.put(key, wandbLog(records)); err != nil {
			return err
		}
	}
	return nil
}

// The numbers of fields.
const (
	wandbRecordNum     = 1
	wandbRecordHistory = 2
	wandbRecordSummary = 3
	wandbRecordRun     = 17
	wandbRecordExit    = 18
	wandbRecordHeader  = 21
	wandbRecordInfo    = 200

	wandbRunID          = 1
	wandbRunProject     = 3
	wandbRunConfig      = 4
	wandbRunDisplayName = 8
	wandbRunStartTime   = 17

	// ConfigRecord, SummaryRecord and HistoryRecord have their items in field 1.
	wandbItems     = 1
	wandbItemKey   = 1
	wandbItemValue = 16 // JSON
)

// wandbRecords returns the records of a run: header, run with its configuration, one history step, summary, exit.
func wandbRecords(r exportedRun) ([][]byte, error) {
	config := map[string]any{"params": typed(r.params), "settings": typed(r.settings), "_wandb": map[string]any{}}
	maps.Copy(config, typed(r.config))
	configItems, err := wandbItemList(config)
	if err != nil {
		return nil, err
	}
	metrics := map[string]any{}
	for name, v := range r.metrics {
		if !math.IsInf(v, 0) && !math.IsNaN(v) { // JSON has none
			metrics[name] = v
		}
	}
	summary, err := wandbItemList(metrics)
	if err != nil {
		return nil, err
	}
	metrics["_step"], metrics["_timestamp"], metrics["_runtime"] = 0, 0, 0
	history, err := wandbItemList(metrics)
	if err != nil {
		return nil, err
	}

	version := wandbText(nil, 1, "ddiff")
	run := wandbText(nil, wandbRunID, r.id)
	run = wandbText(run, wandbRunProject, "ddiff")
	run = wandbMessage(run, wandbRunConfig, configItems)
	run = wandbText(run, wandbRunDisplayName, r.name)
	run = wandbMessage(run, wandbRunStartTime, nil)

	info := wandbText(nil, 1, r.id) // the stream
	var records [][]byte
	for _, part := range []struct {
		field   protowire.Number
		content []byte
	}{
		{wandbRecordHeader, wandbMessage(nil, 1, version)},
		{wandbRecordRun, run},
		{wandbRecordHistory, wandbMessage(history, 2, nil)}, // step 0
		{wandbRecordSummary, summary},
		{wandbRecordExit, nil}, // code 0
	} {
		record := protowire.AppendTag(nil, wandbRecordNum, protowire.VarintType)
		record = protowire.AppendVarint(record, uint64(len(records)+1))
		record = wandbMessage(record, part.field, part.content)
		records = append(records, wandbMessage(record, wandbRecordInfo, info))
	}
	return records, nil
}

// typed returns the values as numbers where they are numbers.
func typed(values map[string]string) map[string]any {
	out := make(map[string]any, len(values))
	for name, v := range values {
		out[name] = v
		if f, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			out[name] = f
		}
	}
	return out
}

// wandbItemList encodes pairs of key and value, by key.
func wandbItemList(values map[string]any) ([]byte, error) {
	var out []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := json.Marshal(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = wandbMessage(out, wandbItems, wandbText(wandbText(nil, wandbItemKey, key), wandbItemValue, string(value)))
	}
	return out, nil
}

func wandbText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func wandbMessage(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

// wandbLog frames records as LevelDB's log does, in blocks of 32 KiB, with a header of W&B and CRC-32 (IEEE).
func wandbLog(records [][]byte) []byte {
	const (
		block                     = 32 << 10
		header                    = 7 // CRC, length, kind
		full, first, middle, last = 1, 2, 3, 4
	)
	var log bytes.Buffer
	log.WriteString(":W&B\xe1\xbe\x00") // name, magic number 0xbee1, version 0
	for _, record := range records {
		for begin := true; begin || len(record) > 0; begin = false {
			left := block - log.Len()%block
			if left < header {
				log.Write(make([]byte, left))
				left = block
			}
			part := record[:min(len(record), left-header)]
			record = record[len(part):]
			kind := byte(middle)
			switch {
			case begin && len(record) == 0:
				kind = full
			case begin:
				kind = first
			case len(record) == 0:
				kind = last
			}
			sum := crc32.Update(crc32.ChecksumIEEE([]byte{kind}), crc32.IEEETable, part)
			frame := binary.LittleEndian.AppendUint32(nil, sum)
			frame = binary.LittleEndian.AppendUint16(frame, uint16(len(part)))
			log.Write(append(frame, kind))
			log.Write(part)
		}
	}
	return log.Bytes()
}
