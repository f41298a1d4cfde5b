// Package guard holds scripts to their bounds: a meter counts what a run takes, a rewritten chunk calls
// guards where the virtual machine would allocate without asking, and what would take long to compile is
// refused. Messages and numbers are Lua's and Redis's. A script belongs to the goroutine that parses or runs
// it, except for Meter.Kill.
package guard

import "strconv"

// An ID tells guards apart. A guard is a native function that stands for an instruction of the virtual
// machine that allocates, and accounts for what it does. Its name is no name in Lua: a script cannot reach or
// replace it.
type ID int

// The guards, with their arguments and what they return.
const (
	Concat    ID = iota // (a, b, ...): a .. b .. ...
	SetIndex            // (object, key, value): object[key] = value
	NewTable            // (): {}
	FillTable           // (hash fields, table, pairs, next index, key, value, ..., element, ...): the table, with the rest set
	Closure             // (function): the function
	Vararg              // (...): ...
	LoopBound           // (bound of a loop): the number that a string spells, or the value
	Nothing             // (): nothing; the main chunk's ..., which holds the guards themselves
	Count               // how many there are
)

func (g ID) name() string { return "(" + strconv.Itoa(int(g)) + ")" }
