package flagvalue

// Nearest returns the name with the fewest edits, unless that is half of it or more; "" for none.
func Nearest(name string, names []string) (nearest string) {
	fewest := (len(name) + 1) / 2
	for _, other := range names {
		if n := edits(name, other); n < fewest {
			nearest, fewest = other, n
		}
	}
	return nearest
}

// edits is how many bytes must be inserted, removed, replaced or swapped with their neighbour to make one text of the other, none
// of them twice: the optimal string alignment distance.
func edits(a, b string) int {
	// Of the part of a so far, of that without its last byte and without its last two, to each beginning of b.
	row, above, aboveThat := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		row, above, aboveThat = aboveThat, row, above
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], aboveThat[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
