package keys_test

import (
	"testing"

	"cellserver/internal/redis/commands/rig"
)

func TestTranscripts(t *testing.T) { rig.PlayTranscripts(t) }
