// Package guard bounds scripts: a meter counts a run's cost, a rewritten chunk calls guards where the virtual
// machine would allocate unasked, and expensive compilations are refused. Messages and numbers are Lua's and
// Redis's. A script belongs to the goroutine that parses or runs it, except for Meter.Kill.
package guard

import (
	"strconv"
)

// ID identifies a guard, a native function that replaces an allocating instruction of the virtual machine and
// charges for it. Scripts cannot reach or replace it: its name is not valid Lua.
type ID int

// Guards with their arguments and results.
const (
	Concat    ID = iota // (a, b, ...): a .. b .. ...
	SetIndex            // (object, key, value): object[key] = value
	NewTable            // (): {}
	FillTable           // (hash fields, table, pairs, next index, key, value, ..., element, ...): the table, with the rest set
	Closure             // (function): the function
	Vararg              // (...): ...
	LoopBound           // (bound of a loop): the number spelled by a string, or the value
	Nothing             // (): nothing; the main chunk's ..., which holds the guards
	Count               // number of guards
)

func (g ID) name() string { return "(" + strconv.Itoa(int(g)) + ")" }

// Costs of tables and closures in gopher-lua, generously, with growth by doubling.
const (
	TableBytes    = 256 // of an empty one
	ElementBytes  = 32  // of a table's array
	FieldBytes    = 192 // of a table's hash part
	ClosureBytes  = 256
	ArgumentBytes = 16 // of a value on the stack
)

// MaxResults bounds a function's arguments and results together, as in Redis.
const MaxResults = 8000
