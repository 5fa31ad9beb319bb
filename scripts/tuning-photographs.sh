#!/usr/bin/env bash
# Downloads the eight photographs on which the preset natural was tuned for the tasks that are not of the paper, from two packages
# of Debian 12, into DIR (default .cache/tuning-photographs). The training of the bundled prior used none of them.
# docs/data/tuning-photographs.csv names their authors and licences. Needs apt-get, dpkg-deb and sha256sum.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The digests are those of restore/method/presets.txt.
photographs=$(
	cat <<-'END'
		8a67c2cb0be8c46b70c237311a4fa4d2b4ac7d39568135384787801fa5cc9a91  mate-backgrounds/usr/share/backgrounds/mate/nature/Dune.jpg
		d3095ee09d425ef23d27155412136cf14fc3c9af76ca58b452f55e23da324e78  mate-backgrounds/usr/share/backgrounds/mate/nature/Garden.jpg
		e35a9a4126ef969c90b29c038058c5a575a20eadd84106a37bf1fa9931e7b61d  mate-backgrounds/usr/share/backgrounds/mate/nature/LadyBird.jpg
		77ca53077831d3237f73393a91fc879158abc046d852941c26e90de336356957  mate-backgrounds/usr/share/backgrounds/mate/nature/Storm.jpg
		f4a6bf48b97d97715413f9ebd2d8744bd46df0e492bc8326e2513d51084f2612  palapeli-data/usr/share/palapeli/collection/castle-maintenon.jpg
		adb9e2834a8a3db40ca3817452b956ada527085e5aa2bd604c465651a3834ae4  palapeli-data/usr/share/palapeli/collection/panther-chameleon-female.jpg
		5c30118205982da441bf7e6a1ada636a8a0be879408140b3148280c665ed6bce  mate-backgrounds/usr/share/backgrounds/mate/nature/Aqua.jpg
		19c78500ac00a622e19907ab9cc7d06d46fe08c4a6142759a84195696150ec07  mate-backgrounds/usr/share/backgrounds/mate/nature/Wood.jpg
	END
)

folder=${1:-.cache/tuning-photographs}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
cd "$packages"
for package in mate-backgrounds palapeli-data; do
	apt-get -qq -o APT::Sandbox::User=root download "$package" || {
		echo "could not download the package $package; run apt-get update, or see docs/data/tuning-photographs.csv" >&2
		exit 1
	}
	dpkg-deb -x "$package"_*.deb "$package"
done
sha256sum --quiet -c - <<<"$photographs" || {
	echo "a package of this distribution has other photographs than Debian 12" >&2
	exit 1
}
cut -c 67- <<<"$photographs" | xargs -I{} cp {} "$folder/"
echo "photographs=8 folder=$folder"
