package method

// needsGradient is [Info.Undivided] of the methods with a gradient through the network.
const needsGradient = "needs the gradient of the network"

// Kept returns the number of evaluations of the network whose values a step of these settings keeps for a gradient. It is 0 for a method
// without a gradient through the network.
func (i Info) Kept(s Settings) int {
	switch {
	case i.Undivided != needsGradient:
		return 0
	case i.PerStep == "":
		return 1
	}
	return int(s.Number(i.PerStep))
}

// Undivided returns the first of the named methods with [Info.Undivided], and its value. Both are empty if there is none. Unknown names
// are skipped.
func (s Set) Undivided(names []string) (name, reason string) {
	for _, name := range names {
		if m, err := s.Find(name); err == nil && m.Info().Undivided != "" {
			return name, m.Info().Undivided
		}
	}
	return "", ""
}
