package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	_ "github.com/cert-manager/cert-manager/internal/controller/feature"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/server"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// runController runs the controllers of certificates and issuers.
func runController(ctx context.Context, arguments []string) error {
	logging := logsapi.NewLoggingConfiguration()
	var leader election
	options := controller.ContextOptions{
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind:                 "Issuer",
			DefaultIssuerGroup:                "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"},
		},
	}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	leader.addFlags(flags)
	flags.StringVar(&options.ClusterResourceNamespace, "cluster-resource-namespace", "kube-system", "namespace of the Secrets of ClusterIssuers")
	flags.StringVar(&options.HTTP01SolverImage, "acme-http01-solver-image", "", "image of a server for ACME; unused")
	flags.IntVar(&options.MaxConcurrentChallenges, "max-concurrent-challenges", 60, "number of challenges at a time; unused")
	logf.AddFlags(logging, flags)
	if err := parse(flags, arguments, logging); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	base, err := factory.Build()
	if err != nil {
		return err
	}

	health := healthz.NewServer(20 * time.Second)
	listener, err := server.Listen(ctx, "tcp", "0.0.0.0:9403")
	if err != nil {
		return err
	}
	group.Go(func() error { return health.Start(ctx, listener) })

	elected := make(chan struct{})
	group.Go(func() error { return elect(ctx, factory, leader, health, elected) })
	select {
	case <-ctx.Done():
		return group.Wait()
	case <-elected:
	}
	for name, construct := range controller.Known() {
		started, err := construct(factory)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		group.Go(func() error { return started.Run(5, ctx) })
	}
	// After the construction of the controllers, which add their metrics.
	listener, err = server.Listen(ctx, "tcp", "0.0.0.0:9402")
	if err != nil {
		return err
	}
	metrics := base.Metrics.NewServer(listener)
	group.Go(func() error {
		<-ctx.Done()
		return metrics.Close()
	})
	group.Go(func() error {
		if err := metrics.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	base.SharedInformerFactory.Start(ctx.Done())
	base.KubeSharedInformerFactory.Start(ctx.Done())
	base.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

// elect takes part in the leader election until it is lost or the context ends.
func elect(ctx context.Context, factory *controller.ContextFactory, leader election, health *healthz.Server, elected chan struct{}) error {
	clients, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(
		resourcelock.LeasesResourceLock,
		leader.namespace,
		"cert-manager-controller",
		clients.Client.CoreV1(),
		clients.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "-external-cert-manager-controller", EventRecorder: clients.Recorder},
	)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leader.leaseDuration,
		RenewDeadline:   leader.renewDeadline,
		RetryPeriod:     leader.retryIn,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
		},
		WatchDog: health.LeaderHealthzAdaptor,
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errors.New("another process became the leader")
	}
	return nil
}
