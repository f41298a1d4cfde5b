package guard

import "strings"

// TranslateMessage puts a message of gopher-lua's virtual machine into Lua 5.1's words, without the variable's name.
func TranslateMessage(text string) string {
	prefix, rest := "", text
	if strings.HasPrefix(text, ChunkName+":") {
		if _, after, ok := strings.Cut(text, ": "); ok {
			prefix, rest = text[:len(text)-len(after)], after
		}
	}
	switch {
	case strings.HasPrefix(rest, "attempt to index a non-table object("):
		kind, _, _ := strings.Cut(rest[len("attempt to index a non-table object("):], ")")
		rest = "attempt to index a " + kind + " value"
	case rest == "attempt to call a non-function object":
		rest = "attempt to call a table value" // simple types have their own message
	case rest == "__unm undefined":
		rest = "attempt to perform arithmetic on a table value"
	case strings.HasPrefix(rest, "cannot perform "):
		if _, kinds, ok := strings.Cut(rest, " operation between "); ok {
			left, right, _ := strings.Cut(kinds, " and ")
			if left == "number" {
				left = right
			}
			rest = "attempt to perform arithmetic on a " + left + " value"
		}
	case strings.HasPrefix(rest, "attempt to compare "):
		left, right, _ := strings.Cut(rest[len("attempt to compare "):], " with ")
		if left == right {
			rest = "attempt to compare two " + left + " values"
		}
	case strings.HasPrefix(rest, "for statement "):
		for gopher, lua := range map[string]string{"init": "initial value", "limit": "limit", "step": "step"} {
			rest = strings.Replace(rest, "for statement "+gopher, "'for' "+lua, 1)
		}
	}
	return prefix + rest
}
