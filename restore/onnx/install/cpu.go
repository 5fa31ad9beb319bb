package install

// cpuVersion is the release of the CPU build. The packages of npm, of the Python package index and of the project's
// release page are separate builds of it. On Linux x64, only that of npm contains the WebGPU provider.
const cpuVersion = "1.30.0"

// cpuSources returns the sources of the CPU build, or nil for a platform without one.
func cpuSources(goos, goarch string) []source {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return []source{
			npmSource(member{"package/bin/napi-v6/linux/x64/libonnxruntime.so.1", "libonnxruntime.so.1", 45828512,
				"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"}),
			wheelSource("manylinux_2_28_x86_64", 23585654, "fa688e7891a6aa206636fe7372e27ee75fd17713289f6b4fc7b190e0a7de9328",
				member{"onnxruntime/capi/libonnxruntime.so.1.30.0", "libonnxruntime.so.1", 28985152,
					"c902c70b3003c0e99fada202f37478c515ae9bba7944c2b2abd0017bae0c82ed"}),
			pageSource("onnxruntime-linux-x64-1.30.0", 11306877, "a5ed5a3cac51fbb2e90da632ae43d19212faaa20e76484e62bcb7c23ddb3b3fd",
				member{"libonnxruntime.so.1.30.0", "libonnxruntime.so.1", 28985152,
					"245a6f8c38127551057a1cd1ffd59f0a186a227ade4f3492dea2494eb565542e"}),
		}
	case "linux/arm64":
		return []source{
			npmSource(member{"package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", "libonnxruntime.so.1", 25135496,
				"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"}),
			wheelSource("manylinux_2_28_aarch64", 21345202, "6c32a000d5139a38ba9349030b0032e3331acb559d596b22738d9d2b343a2b83",
				member{"onnxruntime/capi/libonnxruntime.so.1.30.0", "libonnxruntime.so.1", 25135496,
					"8a218e1e446880131115c368ec7005969a5022af9a15a26173de648fef0b7789"}),
			pageSource("onnxruntime-linux-aarch64-1.30.0", 10269495, "e16a27a8ed330bbc698df7330b0cf56e722f354e3bcc92118682c74ef3c3e3da",
				member{"libonnxruntime.so.1.30.0", "libonnxruntime.so.1", 25135496,
					"64e903a43a041240fd6bcffe0ac6d4fea47ef87bf24b9d097801bd00a9612a4b"}),
		}
	case "darwin/arm64":
		return []source{
			npmSource(member{"package/bin/napi-v6/darwin/arm64/libonnxruntime.1.30.0.dylib", "libonnxruntime.1.dylib", 44589928,
				"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d"}),
			wheelSource("macosx_14_0_arm64", 21544867, "001ed726c9bd5e2bc92faade7d37d889e9606a350b7d5529f0227df2e3bb57fd",
				member{"onnxruntime/capi/libonnxruntime.1.30.0.dylib", "libonnxruntime.1.dylib", 33209560,
					"b46713ea6a25a5227541c21001f6422c1ccdeaecc369aa026a61b752520325c3"}),
			pageSource("onnxruntime-osx-arm64-1.30.0", 42373116, "6ebb5062a934537c352937821f9fe9718e7de1a2db1122a93dd363ffd53a7012",
				member{"libonnxruntime.1.30.0.dylib", "libonnxruntime.1.dylib", 43879424,
					"bcc9110f9d638a119de2db7afb3ba9a1da8085f0cb3401e1c48ae1caf450b6fa"}),
		}
	default:
		return nil
	}
}

// npmSource is the npm package, which has the libraries of all platforms. It has no licence file; package.json and README
// state the licence.
func npmSource(library member) source {
	return source{
		name:   ClientNPM,
		client: npm("onnxruntime-node@" + cpuVersion),
		archive: archive{
			name:   "onnxruntime-node-" + cpuVersion + ".tgz",
			size:   113507888,
			digest: "sha512:twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==",
			format: tarGzip,
		},
		members: []member{
			library,
			{"package/package.json", "package.json", 1593,
				"0871cd56ac2b9c9dfc834c7eabba819e5d4f966f005388515abb3402b14e0874"},
			{"package/README.md", "README.md", 3030,
				"c2b487948c9aed0a5ca8ef7717d78cbc81cfb65e5697d2ad6e2b7bd6fa8bc91b"},
		},
	}
}

// wheelSource is the wheel of the Python package for CPython 3.12. On Linux the wheels of all Python versions have the
// same library.
func wheelSource(platform string, size int64, sha256 string, library member) source {
	return source{
		name:   ClientPip,
		client: pip("onnxruntime=="+cpuVersion, platform),
		archive: archive{
			name:   "onnxruntime-" + cpuVersion + "-cp312-cp312-" + platform + ".whl",
			size:   size,
			digest: "sha256:" + sha256,
			format: zipped,
		},
		members: []member{
			library,
			{"onnxruntime/LICENSE", "LICENSE", 1073,
				"2f07c72751aed99790b8a4869cf2311df85a860b22ded05fa22803587a48922c"},
			{"onnxruntime/ThirdPartyNotices.txt", "ThirdPartyNotices.txt", 338088,
				"143764b952fdb1a7c69ce653bfba74a7744d6a8a573bfb73e235fba356c83de3"},
		},
	}
}

// pageSource is an archive of the project's release page. Several public projects pin each of these digests; the archives
// were not downloaded for this file.
func pageSource(stem string, size int64, sha256 string, library member) source {
	library.path = stem + "/lib/" + library.path
	return source{
		name:   ClientHTTPS,
		client: address("https://github.com/microsoft/onnxruntime/releases/download/v" + cpuVersion + "/" + stem + ".tgz"),
		archive: archive{
			name:   stem + ".tgz",
			size:   size,
			digest: "sha256:" + sha256,
			format: tarGzip,
		},
		members: []member{library},
	}
}
