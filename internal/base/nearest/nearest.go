// Package nearest finds the word that somebody meant to write. It is constant.
package nearest

import "slices"

const (
	maxBytes = 32 // of words compared
	maxEdits = 2
)

// Word returns the word that differs least from a wrong one, or "" without one that is alike: it becomes the other by
// one or two letters more, fewer, other or swapped, and by one if it has fewer than five. Words of more than 32
// bytes are like no other, so a call takes a bounded time for each word.
func Word(wrong string, words []string) (nearest string) {
	least := maxEdits + 1
	for _, word := range words {
		if n := edits(wrong, word); n < least && (n == 1 || min(len(wrong), len(word)) > 4) {
			nearest, least = word, n
		}
	}
	return nearest
}

// edits returns the number of edits between two words, or more than maxEdits (optimal string alignment).
func edits(a, b string) int {
	const many = maxEdits + 1
	if max(len(a), len(b)) > maxBytes || max(len(a)-len(b), len(b)-len(a)) > maxEdits {
		return many
	}
	var rows [3][maxBytes + 1]int // the one before the last, the last, and the present one
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		earlier, last, row := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], earlier[j-2]+1)
			}
		}
		if slices.Min(row[:len(b)+1]) > maxEdits {
			return many
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
