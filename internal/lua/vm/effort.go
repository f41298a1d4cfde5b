package vm

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua's compiler searches lists: a function's constants, visible names, jumps to a label. A short
// source could take seconds, and a compilation cannot be interrupted.

// maxCompileSteps bounds the compilation of a chunk: about 5 ms. A step, some 5 ns, is a comparison of
// constants, so a function may use 1,400 different constants once.
const maxCompileSteps = 1_000_000

// Other costs of the compiler in steps.
const (
	nodeSteps     = 8   // a statement or an expression
	blockSteps    = 60  // a block with its map of labels
	functionSteps = 700 // a function, which reserves 12 KiB
	foldSteps     = 3   // an operand examined for constant folding
	namesPerStep  = 5   // comparisons of names per step
)

// stepKind is what takes steps.
type stepKind int

const (
	statements stepKind = iota
	functions
	constants
	variables
	arithmetic
	labels
	stepKinds
)

func (k stepKind) String() string {
	return [stepKinds]string{"statements", "functions", "different constants", "local variables", "nested arithmetic", "labels"}[k]
}

// checkEffort returns an error for a rewritten chunk that would compile too long.
func checkEffort(chunk []ast.Stmt) error {
	steps := countSteps(chunk)
	total, most := 0, stepKind(0)
	for k, n := range steps {
		total += n
		if n > steps[most] {
			most = stepKind(k)
		}
	}
	if total <= maxCompileSteps {
		return nil
	}
	return fmt.Errorf("script takes more than %d steps to compile, most of them for %s; make it shorter", maxCompileSteps, most)
}
