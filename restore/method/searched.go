package method

// searchedRow is a row of natural with the best settings of examples/methods/search.yaml, see docs/methods.md: those with the highest mean PSNR
// of six at 64×64, sigma 0.05, and 99 or 100 evaluations of the network, on the three photographs of searchPhotographs.
func searchedRow(task string, steps int, values ...any) Row {
	row := publishedRow("natural", task, steps, values...)
	row.ChosenOn = searchPhotographs()
	return row
}

// searchedBeside is searchedRow for rows with further values, which were chosen with bundled photographs before the search.
func searchedBeside(bundled []string, task string, steps int, values ...any) Row {
	row := searchedRow(task, steps, values...)
	row.ChosenOn = union(bundled, row.ChosenOn)
	return row
}

// searchPhotographs returns Garden, LadyBird and castle-maintenon of [tuningPhotographs].
func searchPhotographs() []string {
	all := tuningPhotographs()
	return []string{all[1], all[2], all[4]}
}
