// Package tune chooses settings of methods on some images, so that they can be reported on others.
//
// [Divide] makes the two sides of each fold of a [manifest.Split]. [Race] compares settings on the tuning side by
// successive halving: it asks for values on few images first, stops settings that are clearly worse, and asks for more
// images of the others. [Record] states what was compared on which images; [Record.TunedOn] answers later whether settings
// were chosen on an image.
//
// The package has no I/O, no clock and no random state: equal inputs give equal results, in any order.
package tune
