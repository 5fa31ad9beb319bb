package main_test

import (
	"fmt"
	"strings"
)

// campaignLines is a valid campaign file.
func campaignLines() []string {
	return []string{
		"name: n", "dataset: {path: a.png, size: 16}", "tasks: [hdr]", "methods: [ddiff]", "preset: natural", "prior: bundled", "steps: 3",
		"sigma: 0.05", "seed: 1", "runs: 1", "select: first", "batch: 1", "attempts: 3", "output: out",
	}
}

// badCampaigns are campaign files with a wrong value in each field, and files that are no campaign.
func badCampaigns() []badInput {
	var all []badInput
	add := func(name, text string, parts ...string) {
		all = append(all, badInput{
			name: "campaign/" + name, args: []string{"run", "c.yaml"}, code: 2, parts: append([]string{"ddiff: ", "c.yaml"}, parts...),
			files: map[string][]byte{"c.yaml": []byte(text)}, several: true,
		})
	}
	wrong := func(field string, values ...string) {
		lines := campaignLines()
		for i, line := range lines {
			if !strings.HasPrefix(line, field+":") {
				continue
			}
			for _, value := range values {
				lines[i] = field + ": " + value
				add(field+"="+value, strings.Join(lines, "\n"), fmt.Sprintf("c.yaml:%d: ", i+1), field)
			}
		}
	}
	noNumber := []string{"many", "null", "[]", "{}", "true", "''", "-1", "1e400", ".nan", ".inf", "2020-01-01", "1_0x"}
	for _, field := range []string{"steps", "seed", "runs", "batch", "attempts"} {
		wrong(field, append(noNumber, "1.5", "99999999999999999999")...)
	}
	wrong("steps", "1")
	wrong("runs", "0", "1001")
	wrong("batch", "1025")
	wrong("attempts", "0", "101")
	wrong("sigma", append(noNumber, "1.01", "0.1.2")...)
	for _, field := range []string{"preset", "prior", "select", "output", "name"} {
		wrong(field, "null", "[]", "{}", "[a, b]", "&x y")
	}
	wrong("preset", "faster", "Natural")
	wrong("select", "best", "last")
	wrong("name", "''", strings.Repeat("n", 101))
	wrong("methods", "null", "[]", "{}", "[x]", "[ddiff, ddiff]", "[null]", "[[ddiff]]", "[1]")
	wrong("tasks", "null", "[]", "{}", "[x]", "[null]", "[sr]", "[hdr, hdr]", "[[hdr]]", "[{}]", "[{name: hdr, x: 1}]",
		"[{name: hdr, sigma: -1}]", "[{name: hdr, params: {scale: x}}]", "[{name: hdr, params: {scle: 2}}]", "[{name: hdr, params: {scale: -1}}]",
		"[{name: hdr, solver: {gamma0: -1}}]", "[{name: hdr, solver: {x: 1}}]", "[{name: hdr, methods: [diffpir]}]", "[{name: hdr, steps: 0.5}]",
		"[{name: hdr, sigma: []}]", "[{name: super_resolution, params: {factor: 1.5}}]", "[{name: inpaint_random, params: {drop: 2}}]",
		"[{name: hdr, mask: m.png}]", "[{name: inpaint_box, kernel: k.npy}]", "[{name: inpaint_box, mask: ''}]", "[{name: inpaint_box, mask: [m.png]}]",
		"[{name: gaussian_deblur, params: {std: 0}}]", "[{name: motion_deblur, params: {size: 1e9}}]")
	wrong("dataset", "null", "[]", "a.png", "{path: ''}", "{path: null}", "{path: a.png, size: 7}", "{path: a.png, size: 4097}",
		"{path: a.png, fit: crop}", "{path: a.png, limit: -1}", "{path: a.png, recursive: maybe}", "{path: a.png, columns: x}",
		"{path: a.png, columns: {x: y}}", "{path: a.png, colour: red}", "{path: [a.png]}", "{path: 'https://me:word@host/a.png'}")
	for name, text := range map[string]string{
		"empty": "", "blank": " \n\n", "comment": "# nothing\n", "list": "- a\n", "word": "campaign", "number": "7", "tab": "name:\tx\n\ttasks: [hdr]",
		"two documents": "name: a\n---\nname: b\n", "alias": "name: *x\n", "cut list": "tasks: [hdr", "cut mapping": "dataset: {path: a", "colon": ":", "null byte": "name: a\x00b",
		"bad UTF-8": "name: \xff\xfe", "UTF-16": "\xff\xfen\x00a\x00", "control": "name: \x1b[2J", "unclosed quote": "name: \"x", "repeated field": "name: a\nname: b\n",
		"unknown field": "dataset: {path: a}\ntasks: [hdr]\nstep: 3\n", "bidirectional field": "dataset: {path: a}\ntasks: [hdr]\n\"a\u202eb\": 3\n",
		"escape in a field": "dataset: {path: a}\ntasks: [hdr]\n\"a\\e[2J\": 3\n", "newline in a field": "dataset: {path: a}\ntasks: [hdr]\n\"a\\nb\": 3\n",
		"long field": "dataset: {path: a}\ntasks: [hdr]\n? " + strings.Repeat("k", 900_000) + "\n: 1\n", "long word": "dataset: {path: a}\ntasks: [hdr]\npreset: " + strings.Repeat("k", 900_000),
		"long path": "dataset: {path: " + strings.Repeat("k", 900_000) + "}\ntasks: [hdr]", "large": strings.Repeat("# comment\n", 110_000), "deep": strings.Repeat("[", 20_000),
		"deep mapping": strings.Repeat("{a: ", 20_000), "tag": "name: !!binary x\n", "merge": "<<: {name: x}\n", "mapping as a key": "{a: b}: c\n", "PNG": "\x89PNG\r\n\x1a\n\x00\x00",
		"split": "dataset: {path: a}\ntasks: [hdr]\nsplit: {x: 1}\n", "anchors": "a: &a [x]\nb: [*a, *a]\n",
	} {
		add(name, text)
	}
	var flood strings.Builder
	flood.WriteString("dataset: {path: a.png}\ntasks: [hdr]\n")
	for i := range 80_000 {
		fmt.Fprintf(&flood, "k%d: 1\n", i)
	}
	add("80,000 unknown fields", flood.String(), "unknown field \"k0\"")
	return all
}
