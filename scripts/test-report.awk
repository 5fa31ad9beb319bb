# Prints the slowest tests, and the skipped ones with their reasons, from JUnit reports: those of gotestsum for Go and of pytest for
# Python. A test that skips in one report and runs in another is not skipped. The variable list names the file of the tests that may
# skip, one per line, each followed by a blank and the reason; an entry covers the subtests. With enforce=1 any other skip ends in exit
# code 1.

function attribute(name) {
	return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
}

# reason returns the last line that a Go test logged before it was skipped, or the message of pytest.
function reason(text,    lines, n, last) {
	last = text
	n = split(text, lines, "&#xA;")
	while (n > 0) {
		if (sub(/^ *[A-Za-z0-9_.-]+\.go:[0-9]+: /, "", lines[n])) {
			last = lines[n]
			break
		}
		n--
	}
	gsub(/&#34;|&quot;/, "\"", last)
	gsub(/&#39;|&apos;/, "'", last)
	gsub(/&lt;/, "<", last)
	gsub(/&gt;/, ">", last)
	gsub(/&amp;/, "\\&", last)
	return last
}

function listed(test,    entry) {
	for (entry in allowed)
		if (test == entry || index(test, entry "/") == 1)
			return 1
	return 0
}

BEGIN {
	RS = "<" # a record is a tag
	while ((getline tag < list) > 0) # the list has no tags: one record
		text = text tag
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++)
		if (lines[i] !~ /^(#|$)/) {
			split(lines[i], words, " ")
			allowed[words[1]]
			if (words[2] == "") {
				print list ":" i ": " words[1] " has no reason; add one after a blank"
				failed = 1
			}
		}
}

/^testcase / {
	test = attribute("classname") "." attribute("name")
	time[test] = time[test] > attribute("time") + 0 ? time[test] : attribute("time") + 0
	ran[test]++
	if (match(test, /\/[^\/]*$/)) # the time of a parent includes its subtests
		parent[substr(test, 1, RSTART - 1)]
}

/^skipped/ {
	ran[test]--
	why[test] = reason(attribute("message"))
}

END {
	slowest = "sort -rn | head -n 15"
	for (test in time)
		if (ran[test] && !(test in parent))
			printf "  %6.1f s  %s\n", time[test], test | slowest
	close(slowest)
	listing = "sort"
	for (test in ran) {
		if (ran[test]) {
			tests++
			continue
		}
		skips++
		unlisted += !listed(test)
		print "  " (listed(test) ? "may skip" : enforce ? "MUST RUN" : "skipped ") "  " test ": " why[test] | listing
	}
	close(listing)
	printf "%d tests ran, %d tests skipped, %d of them not in %s\n", tests, skips, unlisted, list
	if (enforce && unlisted) {
		print "make them run, or list each with a reason in " list
		failed = 1
	}
	exit failed
}
