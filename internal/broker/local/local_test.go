package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/broker/brokertest"
	"github.com/edihub/edihub/internal/broker/local"
	"github.com/edihub/edihub/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBroker(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, func(*testing.T) broker.Broker { return local.New(clock.System{}) })
}
