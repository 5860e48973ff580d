import os, sys, tempfile, time as t
from pathlib import Path
real = t.perf_counter
real_time = t.perf_counter
import uuid, random, secrets
from tests.simulation import scheduler
scheduler.install()
from cyborg_lite import runtime
from tests.simulation.cloud import Cloud, HOSTS
import logging
print('imported', real())
d = Path(tempfile.mkdtemp(dir='/dev/shm'))
s = scheduler.Scheduler(int(sys.argv[1]))
scheduler.use(s)
logging.basicConfig(level=logging.WARNING)
c = Cloud(d)
t0=real_time()
c.start()
from collections import Counter
counts=Counter()
old=s._choose
def choose():
    t=old(); counts[t.node+' '+t.name]+=1; return t
s._choose=choose
scheduler.sleep(120)
print(s.now, s.switches, real_time()-t0)
print(c.placement.providers)
r = c.ask('GET','/v2/devices')
print(r.status, r.body[:300])
print(counts.most_common(12)); counts.clear(); scheduler.sleep(300); print(counts.most_common(12))
print(s.now, s.switches, real_time()-t0)
os._exit(0)
