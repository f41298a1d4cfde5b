package flagvalue

// Nearest returns the name with the fewest edits, fewer than half of its length; else "".
func Nearest(name string, names []string) (nearest string) {
	fewest := (len(name) + 1) / 2
	for _, other := range names {
		if n := edits(name, other); n < fewest {
			nearest, fewest = other, n
		}
	}
	return nearest
}

// edits returns the optimal string alignment distance: inserted, removed, replaced or swapped bytes, none of
// them twice.
func edits(a, b string) int {
	// Distances to each beginning of b: of the current part of a, without its last byte, and without its last
	// two.
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
