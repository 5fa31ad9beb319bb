package main_test

import (
	"strings"
)

// badFlags are wrong flags and arguments of every command.
func badFlags() []badInput {
	var all []badInput
	add := func(code int, part string, args ...string) {
		all = append(all, badInput{name: "flag/" + strings.Join(args, " "), args: args, code: code, parts: []string{"ddiff: ", part}})
	}
	for _, command := range []string{
		"run", "tune", "verify", "replay", "pull", "score", "report", "compare", "view", "export", "coordinator", "worker", "workers", "submit", "list", "status", "top",
		"pause", "resume", "cancel", "change", "retry", "append", "delete", "token list", "login", "tasks", "methods", "prior inspect", "prior check",
		"prior card", "operator check", "doctor", "runtime where", "runtime install", "bench", "gc", "version", "man",
	} {
		words := strings.Fields(command)
		add(2, "unknown flag: --zzzz; see: ddiff "+command+" --help", append(words, "--zzzz")...)
		add(2, "unknown shorthand flag: 'Z'", append(words, "-Z")...)
	}
	for _, command := range []string{"workers", "list", "doctor", "version", "bench", "worker", "coordinator"} {
		add(2, "see: ddiff "+command+" --help", command, "x")
	}
	add(2, "login: there is no server; name one with --server or $DDIFF_SERVER", "login")
	add(2, `unknown task "zzzzz" (valid: `, "tasks", "zzzzz")
	add(2, `unknown method "dap" (did you mean "daps"?)`, "methods", "dap")
	for _, command := range []string{"verify", "replay", "pull", "compare", "pause", "cancel", "delete", "retry"} {
		add(2, "0 arguments; usage: ddiff "+command, command)
	}
	for limits, want := range map[string]string{"": "--budget is empty", "second=3": "is no limit", "seconds=x": "is no limit"} {
		add(2, want, "change", "x", "--budget", limits)
	}
	add(2, "there is nothing to change", "change", "x")
	add(2, "--weight: 0 is outside 1..1000", "change", "x", "--weight", "0")
	add(2, "--items: 0 is not a multiple of the batch size", "bench", "--items", "0")
	add(2, "--days: 0 is outside 1..3650", "token", "create", "--owner", "ann", "--days", "0")
	for _, word := range []string{"rum", "RUN", "x", "run2", "", " ", "a\x1b[2Jb", "a\nb", "\u202e", strings.Repeat("x", 100_000), "prior nope", "dead nope", "operator nope", "runtime nope", "help nope"} {
		add(2, "unknown command", strings.Split(word, " ")...)
	}
	run := func(part string, args ...string) {
		in := refused("flag/run "+strings.Join(args, " "), map[string][]byte{"a.png": []byte("x")}, 2, []string{"ddiff: ", part}, append([]string{"a.png"}, args...)...)
		all = append(all, in)
	}
	for _, flag := range []string{"--steps", "--size", "--limit", "--runs", "--batch", "--threads", "--seed"} {
		for _, value := range []string{"x", "", "1.5", "-1", "NaN", "99999999999999999999", "0x", "1e3"} {
			run(flag, "--task", "hdr", flag+"="+value)
		}
	}
	for _, value := range []string{"x", "", "-0.1", "1.1", "NaN", "Inf", "1e999"} {
		run("--sigma", "--task", "hdr", "--sigma="+value)
	}
	for _, c := range [][2]string{
		{"--task", "x"}, {"--task", ""}, {"--task", "hdr,hdr"}, {"--task", "HDR"}, {"--task", "hdr,"}, {"--method", "x"}, {"--method", ""}, {"--preset", "x"}, {"--select", "x"}, {"--fit", "x"},
		{"--param", "x"}, {"--param", "scale"}, {"--param", "scale=x"}, {"--param", "scale=-1"}, {"--param", "scle=2"}, {"--param", "=2"}, {"--param", "hdr.=2"}, {"--param", "sr.scale=2"},
		{"--solver", "x"}, {"--solver", "gamma0=x"}, {"--solver", "gamma0=-1"}, {"--solver", "gama0=1"}, {"--solver", "=1"}, {"--solver", "sigma_rule=x"},
		{"--set", "x"}, {"--set", "sigma="}, {"--set", "sigma=2"}, {"--set", "x=1,2"}, {"--set", "sigma=0.1,0.1"}, {"--set", "steps=0.5"},
		{"--log-level", "loud"}, {"--log-format", "xml"}, {"--ep", "tpu"}, {"--stage-timeout", "solve"}, {"--stage-timeout", "x=1s"}, {"--stage-timeout", "solve=-1s"}, {"--stage-timeout", "solve=1"},
		{"--allow-network", "x"}, {"--allow-network", "10.0.0.0/99"}, {"--source-cache", "x"},
	} {
		args := []string{c[0], c[1]}
		if c[0] != "--task" {
			args = append([]string{"--task", "hdr"}, args...)
		}
		run("--", args...)
	}
	return all
}

// badAddresses are addresses that are none, or that the guard of the network refuses.
func badAddresses() []badInput {
	var all []badInput
	for _, address := range []string{
		"ftp://x/y.png", "gs://b/x.png", "http://example.org/x.png", "https://", "https:///x.png", "https://127.0.0.1/x.png", "https://127.1.2.3/x.png", "https://0.0.0.0/x.png", "https://10.0.0.1/x.png",
		"https://192.168.1.1/x.png", "https://172.16.0.1/x.png", "https://169.254.169.254/latest/x.png", "https://[::1]/x.png", "https://[fe80::1]/x.png", "https://[fc00::1]/x.png",
		"https://[::ffff:127.0.0.1]/x.png", "https://100.64.0.1/x.png", "https://224.0.0.1/x.png", "https://255.255.255.255/x.png", "https://me:word@host/x.png", "https://h/%zz.png",
		"https://h:99999/x.png", "https://h:x/x.png", "https://[::1/x.png", "s3://", "s3:///x.png", "s3://b", "s3://me:word@bucket/x.png", "s3://UPPER/x.png",
		"s3://bucket/x.png?endpoint=http://127.0.0.1:1", "s3://bucket/x.png?endpoint=https://10.0.0.1", "s3://bucket/x.png?x=y", "file://host/x.png",
		"file:///nowhere/x.png", "file://", "file:///%zz", "https://h/\x1b[2J.png", "https://h/\u202e.png\n", "https://" + "x y/",
	} {
		in := refused("address/"+address, nil, 2, []string{"ddiff: "}, "--images", address, "--task", "hdr")
		all = append(all, in)
	}
	for _, address := range []string{"x://y", "https://host/x", "s3://", "s3://b", "s3://UPPER/x", "s3://me:word@bucket/x", "s3://bucket/x?y=z", "s3://bucket/x?endpoint=ftp://h"} {
		in := refused("output/"+address, map[string][]byte{"a.png": []byte("x")}, 2, []string{"ddiff: "}, "a.png", "--task", "hdr", "--out", address)
		all = append(all, in)
	}
	for _, command := range []string{"list", "workers", "status x", "status x --watch", "retry x --dead", "cancel x"} {
		for _, address := range []string{"nats://x", "x y", "http://", "http://h:x", "://", "http://h\x1b:1", "http://me:word@h"} {
			args := append(strings.Fields(command), "--server", address)
			all = append(all, badInput{name: "server/" + strings.Join(args, " "), args: args, code: 2, parts: []string{"ddiff: "}})
		}
		args := append(strings.Fields(command), "--server", "http://127.0.0.1:1")
		all = append(all, badInput{name: "server/" + strings.Join(args, " "), args: args, code: 9, parts: []string{"ddiff: ", "127.0.0.1:1"}})
	}
	for _, address := range []string{"http://x", "x y", "nats://", "nats://h:x", "nats://h:99999", "nats://h:0", "://", "nats://h\x1b:1"} {
		args := []string{"worker", "--simulate", "1s", "--nats", address}
		all = append(all, badInput{name: "nats/" + strings.Join(args, " "), args: args, code: 2, parts: []string{"ddiff: "}})
	}
	return all
}

// badEnvironments are variables that name nothing usable.
func badEnvironments() []badInput {
	var all []badInput
	add := func(code int, env, part string, args ...string) {
		all = append(all, badInput{
			name: "environment/" + env + " " + args[0], files: map[string][]byte{"a.png": grey(16), "file": []byte("x")}, env: []string{env},
			args: args, code: code, parts: []string{"ddiff: ", part},
		})
	}
	run := []string{"run", "--quiet", "--threads", "1", "--size", "16", "--steps", "3", "--out", "out", "a.png", "--task", "hdr"}
	for _, library := range []string{"nowhere.so", "file", ".", "/dev/null", "a.png"} {
		add(4, "DDIFF_ONNXRUNTIME="+library, library, run...)
		add(4, "DDIFF_ONNXRUNTIME="+library, library, "runtime", "where")
	}
	for _, address := range []string{"http://x", "x y", "nats://h:x"} {
		add(2, "DDIFF_NATS_URL="+address, "", "worker", "--simulate", "1s")
		add(2, "DDIFF_SERVER="+address+":x", "", "list")
	}
	for _, file := range []string{"nowhere", "."} {
		add(2, "DDIFF_NATS_CREDS="+file, file, "worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1")
		add(2, "DDIFF_NATS_NKEY="+file, file, "worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1")
		add(2, "DDIFF_NATS_CA="+file, file, "worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1")
	}
	return all
}
