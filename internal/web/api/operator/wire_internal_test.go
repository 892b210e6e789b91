package operator

import (
	"testing"

	"atelier/internal/account/operator"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
)

// TestFlowsNeedNoEngine: a flow adds no engine that no node has.
func TestFlowsNeedNoEngine(t *testing.T) {
	t.Parallel()
	poster := &catalog.Tool{
		ID:     "poster",
		Engine: catalog.Engine{Name: catalog.FlowEngine},
		Flow:   &flow.Definition{},
	}
	if engines := listEngines(operator.Status{}, []*catalog.Tool{poster}); len(engines) != 0 {
		t.Errorf("engines = %+v, want none", engines)
	}
}
