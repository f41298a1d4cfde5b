package vm

import (
	"strconv"
)

// Guard identifies a guard, a native function that replaces an allocating instruction of the virtual machine
// and charges for it. Scripts cannot reach or replace it: its name is not valid Lua.
type Guard int

// Guards with their arguments and results.
const (
	concatGuard    Guard = iota // (a, b, ...): a .. b .. ...
	setIndexGuard               // (object, key, value): object[key] = value
	newTableGuard               // (): {}
	fillTableGuard              // (hash fields, table, pairs, next index, key, value, ..., element, ...): the table, with the rest set
	closureGuard                // (function): the function
	varargGuard                 // (...): ...
	loopBoundGuard              // (bound of a loop): the number spelled by a string, or the value
	nothingGuard                // (): nothing; the main chunk's ..., which holds the guards
	GuardCount                  // number of guards
)

func (g Guard) name() string { return "(" + strconv.Itoa(int(g)) + ")" }

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
