#!/usr/bin/env bash
# Builds the archives of a release for linux/amd64 and arm64, with licences and SBOM, and the wheels, also for macOS on arm64. Run it through `make release`.
#
#   release.sh [VERSION [DIR]]      write them to DIR (bin/release); VERSION names a commit without a tag
#   release.sh --check [VERSION]    only check the checkout, and print the version
#
# Variables: SIGN is a command that signs the file SHA256SUMS, its last argument, such as "ssh-keygen -Y sign -n file -f KEY" or "cosign
# sign-blob --yes --bundle SHA256SUMS.sigstore.json". SOURCE and BUILDER are the addresses of the source and the builder in the provenance.
#
# The archives contain the program, the pinned ONNX Runtime with verified digests, manual pages, completions of shells, licence
# texts, SBOM, and the documents with the files of deploy, the chart and the examples. Two builds of one commit have equal bytes: the program is built in a fresh clone without paths of the
# machine, and archives have sorted names, the time of the commit, and no owners.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

refuse() {
	echo "release: $*" >&2
	exit 1
}

check=
[[ ${1:-} != --check ]] || { check=yes && shift; }
given=${1:-} out=${2:-bin/release} tag=

changes=$(git status --porcelain)
[[ -z $changes ]] || refuse "the checkout has changes ($(head -n 1 <<<"$changes")); commit or remove them"
commit=$(git rev-parse HEAD)
mapfile -t tags < <(git tag --points-at HEAD | grep -Ex 'v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?')
((${#tags[@]} <= 1)) || refuse "commit $commit has the tags ${tags[*]}; leave one"
if ((${#tags[@]} == 1)); then
	tag=${tags[0]}
	[[ -z $given || v$given == "$tag" ]] || refuse "the commit has the tag $tag, VERSION is $given; leave VERSION away"
	version=${tag#v}
else
	[[ -n $given ]] || refuse "the commit has no tag like v1.2.3; check out a tag, or name the version: make release VERSION=1.2.3-rc1"
	[[ $given =~ ^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$ ]] || refuse "VERSION=$given is no version like 1.2.3 or 1.2.3-rc1"
	version=$given
fi
if [[ $check ]]; then
	echo "$version"
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The Go tool records the tag of a clone, but not that of a linked work tree; and a clone has no ignored files.
source=$work/source
git clone --quiet . "$source"
git -C "$source" checkout --quiet --detach "$commit"

machine=$(go env GOHOSTARCH)
program() { # program ARCH FILE
	local cc=gcc
	[[ $1 == "$machine" ]] || case $1 in
	amd64) cc=x86_64-linux-gnu-gcc ;;
	arm64) cc=aarch64-linux-gnu-gcc ;;
	esac
	CGO_ENABLED=1 GOOS=linux GOARCH=$1 CC=$cc GOFLAGS=-mod=readonly GOAMD64=v1 GOARM64=v8.0 GOWORK=off CGO_CFLAGS=-O2 CGO_LDFLAGS='' \
		go -C "$source" build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$2" ./cmd/ddiff
}

runner=$work/runner # the program on this machine
program "$machine" "$runner"
go -C "$source/internal/deploy" build -o "$work/parts" ./release
stated=$("$runner" version --json) want="\"tag\":\"$tag\",\"commit\":\"$commit\""
[[ -z $tag ]] || want="\"version\":\"$version\",$want"
[[ $stated == *"$want"* ]] || refuse "the program states $stated, want $want; correct release in internal/cli/version.go"

mkdir -p "$out"
rm -f "$out"/ddiff[-_]* "$out"/SHA256SUMS*
for arch in amd64 arm64; do
	stem=ddiff-$version-linux-$arch
	tree=$work/$stem
	documentation=$tree/share/doc/ddiff
	mkdir -p "$tree"/{bin,lib/ddiff,share/{man/man1,doc/ddiff,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}}
	program $arch "$tree/bin/ddiff"
	"$work/parts" library -arch $arch "$tree/lib/ddiff"
	cp "$source/priors/base.onnx" "$tree/lib/ddiff"
	"$runner" man "$tree/share/man/man1" >/dev/null
	"$runner" completion bash >"$tree/share/bash-completion/completions/ddiff"
	"$runner" completion zsh >"$tree/share/zsh/site-functions/_ddiff"
	"$runner" completion fish >"$tree/share/fish/vendor_completions.d/ddiff.fish"
	"$source/scripts/pages.sh" "$documentation"
	(cd "$source" && "$work/parts" documents -arch $arch -program "$tree/bin/ddiff" -runner "$runner" -cpu "$tree/lib/ddiff" "$documentation")
	cp "$documentation/ddiff.cdx.json" "$out/$stem.cdx.json"
	links=$(find "$tree" ! -type f ! -type d)
	[[ -z $links ]] || {
		echo "release: $links is neither a file nor a folder" >&2
		exit 1
	}
	tar --create --directory "$work" --sort=name --mtime="@$(git show --no-patch --format=%ct HEAD)" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX --format=gnu "$stem" | gzip -9n >"$out/$stem.tar.gz"
done
# The program for macOS has the modules of that for Linux, without procfs.
GOFLAGS='-mod=readonly -trimpath -buildvcs=true' GOARM64=v8.0 GOWORK=off CGO_CFLAGS=-O2 CGO_LDFLAGS='' "$source/scripts/macos.sh" "$work/ddiff"

# The clone is changed after its programs, which state changes. Python's versions have no other texts after a hyphen.
wheel=$version
[[ $wheel =~ -(a|alpha|b|beta|rc)[0-9]+$ ]] || wheel=${wheel/-/+}
sed -i "s/^version = .*/version = \"$wheel\"/" "$source/python/pyproject.toml"
for tree in "$work/ddiff-$version"-linux-*; do
	"$source/scripts/wheel.sh" "$tree/bin/ddiff" "$out" "$tree/share/doc/ddiff/licenses"
done
"$source/scripts/wheel.sh" "$work/ddiff" "$out" "$documentation/licenses"
cd "$out"
# An in-toto statement with the provenance of SLSA 1.0.
sha256sum "ddiff-$version"-linux-* ddiff_restore-*.whl | jq --raw-input --slurp --arg source "${SOURCE:-https://ddiff.example}" --arg commit "$commit" --arg version "$version" \
	--arg builder "${BUILDER:-urn:ddiff:local}" '{
	_type: "https://in-toto.io/Statement/v1",
	subject: [rtrimstr("\n") | split("\n")[] | split("  ") | {name: .[1], digest: {sha256: .[0]}}],
	predicateType: "https://slsa.dev/provenance/v1",
	predicate: {
		buildDefinition: {
			buildType: "urn:ddiff:make-release", externalParameters: {version: $version},
			resolvedDependencies: [{uri: "git+\($source)", digest: {gitCommit: $commit}}]
		},
		runDetails: {builder: {id: $builder}}
	}
}' >"ddiff-$version.provenance.json"
sha256sum ddiff[-_]* >SHA256SUMS
if [[ ${SIGN:-} ]]; then
	$SIGN SHA256SUMS >&2
fi
echo "version=$version commit=${commit:0:12} archives=2 wheels=3 dir=$out"
