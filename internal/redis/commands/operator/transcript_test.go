package operator_test

import (
	"testing"

	"cellserver/internal/redis/commands/commandstest"
)

func TestTranscripts(t *testing.T) { commandstest.PlayTranscripts(t) }
