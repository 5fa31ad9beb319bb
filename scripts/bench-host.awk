# Prints the benchmarks of the host, and their figures as one line. images_per_s_per_core is the number of pictures of 256x256 pixels with 20 steps, in
# batches of 16, that a core of the host serves in a second.
/^Benchmark/ {
	split($1, name, /[\/-]/)
	for (i = 2; i < NF; i++) if ($(i + 1) ~ /^(noise_ns|step_ms|image_ms)$/) {
		value[$(i + 1) ($(i + 1) == "step_ms" ? "_" name[2] : "")] = $i
		print name[1], $(i + 1) == "step_ms" ? name[2] : "", $i, $(i + 1)
	}
}
/FAIL|panic|_test.go:/ { print }
END {
	if (!("noise_ns" in value) || !("step_ms_b16" in value) || !("image_ms" in value)) exit 1
	image = value["image_ms"] + 20 * (value["step_ms_b16"] / 16 + value["noise_ns"] * 3 * 256 * 256 / 1e6)
	printf "noise_ns=%.1f step_ms_b1=%.2f step_ms_b16=%.2f image_ms=%.0f images_per_s_per_core=%.0f\n",
		value["noise_ns"], value["step_ms_b1"], value["step_ms_b16"], value["image_ms"], 1000 / image
}
