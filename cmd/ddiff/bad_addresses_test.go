package main_test

import "strings"

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
	for _, command := range []string{"list", "workers", "status x", "status x --watch", "retry x --list", "cancel x"} {
		for _, address := range []string{"http://x", "x y", "nats://", "nats://h:x", "nats://h:99999", "nats://h:0", "://", "nats://h\x1b:1"} {
			args := append(strings.Fields(command), "--nats", address)
			all = append(all, badInput{name: "nats/" + strings.Join(args, " "), args: args, code: 2, parts: []string{"ddiff: "}})
		}
		args := append(strings.Fields(command), "--nats", "nats://127.0.0.1:1")
		all = append(all, badInput{name: "nats/" + strings.Join(args, " "), args: args, code: 9, parts: []string{"ddiff: ", "127.0.0.1:1"}})
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
		add(2, "DDIFF_NATS_URL="+address, "", "list")
	}
	for _, file := range []string{"nowhere", "."} {
		add(2, "DDIFF_NATS_CREDS="+file, file, "list", "--nats", "nats://127.0.0.1:1")
		add(2, "DDIFF_NATS_NKEY="+file, file, "list", "--nats", "nats://127.0.0.1:1")
		add(2, "DDIFF_NATS_CA="+file, file, "list", "--nats", "nats://127.0.0.1:1")
	}
	return all
}
