package conformance

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "conformance.example.com/copy"

// copier keeps a Secret with the data of each ConfigMap that asks for it.
type copier struct {
	client client.Client
	scheme func(owner, owned metav1.Object) error
}

func (c *copier) Reconcile(ctx context.Context, request controllerruntime.Request) (controllerruntime.Result, error) {
	var source corev1.ConfigMap
	if err := c.client.Get(ctx, request.NamespacedName, &source); err != nil {
		return controllerruntime.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels["copy"] != "yes" {
		return controllerruntime.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	if !source.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(c.client.Delete(ctx, secret)); err != nil {
			return controllerruntime.Result{}, err
		}
		before := client.MergeFrom(source.DeepCopy())
		controllerutil.RemoveFinalizer(&source, finalizer)
		return controllerruntime.Result{}, client.IgnoreNotFound(c.client.Patch(ctx, &source, before))
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := c.client.Update(ctx, &source); err != nil {
			return controllerruntime.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, secret, func() error {
		secret.Data = map[string][]byte{}
		for key, value := range source.Data {
			secret.Data[key] = []byte(value)
		}
		return c.scheme(&source, secret)
	})
	return controllerruntime.Result{}, err
}

// A manager with leader election, a cache and a reconciler, like most operators.
func TestAReconcilerOfControllerRuntime(t *testing.T) {
	at := start(t)
	log.SetLogger(zap.New())
	manager, err := controllerruntime.NewManager(at.config, controllerruntime.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "conformance",
		LeaderElectionNamespace: at.namespace,
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{at.namespace: {}}},
	})
	check(t, err)
	check(t, manager.GetFieldIndexer().IndexField(at.ctx, &corev1.Secret{}, "key", func(object client.Object) []string {
		return []string{string(object.(*corev1.Secret).Data["key"])}
	}))
	reconciler := &copier{manager.GetClient(), func(owner, owned metav1.Object) error {
		return controllerutil.SetControllerReference(owner, owned, manager.GetScheme())
	}}
	check(t, controllerruntime.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconciler))
	ctx, stop := context.WithCancel(at.ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	maps, secrets := at.client.CoreV1().ConfigMaps(at.namespace), at.client.CoreV1().Secrets(at.namespace)
	source := configMap("a")
	source.Labels["copy"] = "yes"
	_, err = maps.Create(at.ctx, source, metav1.CreateOptions{})
	check(t, err)
	copied := func(value string) func() bool {
		return func() bool {
			secret, err := secrets.Get(at.ctx, "a", metav1.GetOptions{})
			return err == nil && string(secret.Data["key"]) == value
		}
	}
	eventually(t, "the copy is created", copied("value"))
	eventually(t, "the copy is in the cache", func() bool {
		var found corev1.SecretList
		err := manager.GetClient().List(at.ctx, &found, client.InNamespace(at.namespace), client.MatchingFields{"key": "value"})
		return err == nil && len(found.Items) == 1
	})
	// A deleted copy is created again, and a change is copied.
	check(t, secrets.Delete(at.ctx, "a", metav1.DeleteOptions{}))
	eventually(t, "the copy is created again", copied("value"))
	_, err = maps.Patch(at.ctx, "a", "application/merge-patch+json", []byte(`{"data":{"key":"new"}}`), metav1.PatchOptions{})
	check(t, err)
	eventually(t, "the copy changes", copied("new"))
	check(t, maps.Delete(at.ctx, "a", metav1.DeleteOptions{}))
	eventually(t, "source and copy are deleted", func() bool {
		_, err := maps.Get(at.ctx, "a", metav1.GetOptions{})
		_, other := secrets.Get(at.ctx, "a", metav1.GetOptions{})
		return errors.IsNotFound(err) && errors.IsNotFound(other)
	})
	stop()
	select {
	case err := <-ended:
		check(t, err)
	case <-time.After(timeout):
		t.Fatal("the manager does not end")
	}
}

// Dependents are deleted with their owner.
func TestDependentsAreCollected(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	owner, err := maps.Create(at.ctx, configMap("owner"), metav1.CreateOptions{})
	check(t, err)
	dependent := configMap("dependent")
	yes := true
	dependent.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &yes,
	}}
	_, err = maps.Create(at.ctx, dependent, metav1.CreateOptions{})
	check(t, err)
	policy := metav1.DeletePropagationForeground
	check(t, maps.Delete(at.ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
	eventually(t, "both are deleted", func() bool {
		list, err := maps.List(at.ctx, metav1.ListOptions{LabelSelector: "app=a"})
		return err == nil && len(list.Items) == 0
	})
}
