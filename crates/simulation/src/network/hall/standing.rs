//! The states of the servers of a node while they do not serve: ready, off, being set up, broken.

use kendall_station::{Breakdown, Clock, Interrupted};

use super::{Hall, Outcome, Power, Running, Server};
use crate::network::scene::{Event, Scene};

impl Hall<'_> {
    /// Frees a server that is on and works: it takes a customer, or stays ready, or is switched off.
    pub(super) fn free(&mut self, server: u32, scene: &mut Scene<'_>) {
        if !self.queue.is_empty() {
            self.start_next(server, scene);
            return;
        }
        let Some(setup) = &self.spot.conditions().setup else {
            self.ready.push(server);
            return;
        };
        let slot = &mut self.servers[server as usize];
        slot.power_plan = slot.power_plan.wrapping_add(1);
        match &setup.off_after {
            None => slot.power = Power::Off,
            Some(after) => {
                self.ready.push(server);
                let event = Event::SwitchOff { node: self.index, server, plan: slot.power_plan };
                scene.plan(after.sample(&mut self.streams.setup), event);
            }
        }
    }

    pub(super) fn take_ready(&mut self) -> Option<u32> {
        let server = self.ready.pop()?;
        let slot = &mut self.servers[server as usize];
        slot.power_plan = slot.power_plan.wrapping_add(1);
        Some(server)
    }

    /// Sets up servers that are off while more customers wait than servers are being set up.
    pub(super) fn want_setups(&mut self, scene: &mut Scene<'_>) {
        let Some(setup) = &self.spot.conditions().setup else { return };
        let waiting = match &self.sharing {
            Some(sharing) => sharing.len().saturating_sub(self.busy),
            None => self.queue.len() as u64,
        };
        while waiting > self.setting_up {
            let off = |slot: &Server| slot.power == Power::Off && !slot.broken && slot.held.is_none();
            let Some(server) = self.servers.iter().position(off) else { return };
            let slot = &mut self.servers[server];
            slot.power = Power::SettingUp;
            slot.power_plan = slot.power_plan.wrapping_add(1);
            self.setting_up += 1;
            let event = Event::SetUp { node: self.index, server: server as u32, plan: slot.power_plan };
            scene.plan(setup.time.sample(&mut self.streams.setup), event);
        }
    }

    pub(in super::super) fn set_up(&mut self, server: u32, scene: &mut Scene<'_>) {
        self.touch(scene);
        self.servers[server as usize].power = Power::On;
        self.setting_up -= 1;
        self.put_to_work(server, scene);
    }

    pub(in super::super) fn switch_off(&mut self, server: u32) {
        self.ready.retain(|&ready| ready != server);
        self.servers[server as usize].power = Power::Off;
    }

    /// Breaks a server down, in service or not.
    pub(in super::super) fn fail(&mut self, server: u32, scene: &mut Scene<'_>) -> Outcome {
        self.touch(scene);
        self.bring_up_to_date(server, scene.now_s);
        let Some(Breakdown { repair, then, .. }) = &self.spot.conditions().breakdown else {
            return Outcome::Nothing;
        };
        let slot = &mut self.servers[server as usize];
        slot.broken = true;
        slot.power_plan = slot.power_plan.wrapping_add(1);
        if slot.power == Power::SettingUp {
            slot.power = Power::Off;
            self.setting_up -= 1;
        }
        self.down += 1;
        scene.plan(repair.sample(&mut self.streams.breakdown), Event::Repair { node: self.index, server });
        if let Some(sharing) = &mut self.sharing {
            if sharing.stop(server) {
                self.busy -= 1;
                scene.busy -= 1;
            }
            self.ready.retain(|&ready| ready != server);
            self.share_out_servers(scene);
            return Outcome::Nothing;
        }
        let Some(Running { mut entry, .. }) = slot.running.take() else {
            self.ready.retain(|&ready| ready != server);
            self.want_setups(scene);
            return Outcome::Nothing;
        };
        slot.plan = slot.plan.wrapping_add(1);
        self.busy -= 1;
        scene.busy -= 1;
        match then {
            Interrupted::Lose => {
                self.present -= 1;
                self.look_ahead(scene);
                return Outcome::Broken(entry.item);
            }
            Interrupted::Restart => entry.job.attained = 0.0,
            Interrupted::Resume => {}
        }
        self.queue.resume(entry);
        self.serve_first_waiting(scene);
        self.want_setups(scene);
        self.look_ahead(scene);
        Outcome::Nothing
    }

    pub(in super::super) fn repair(&mut self, server: u32, scene: &mut Scene<'_>) {
        self.touch(scene);
        self.down -= 1;
        let slot = &mut self.servers[server as usize];
        slot.broken = false;
        if let Some(breakdown) = &self.spot.conditions().breakdown {
            slot.life_s = breakdown.up.sample(&mut self.streams.breakdown);
            if breakdown.clock == Clock::Calendar {
                scene.plan(slot.life_s, Event::Fail { node: self.index, server });
            }
        }
        match slot.power {
            _ if slot.held.is_some() => {}
            Power::On => self.put_to_work(server, scene),
            Power::Off | Power::SettingUp => self.want_setups(scene),
        }
    }

    /// Puts a server that is on and repaired to work.
    pub(super) fn put_to_work(&mut self, server: u32, scene: &mut Scene<'_>) {
        if self.sharing.as_ref().is_some_and(|sharing| sharing.len() > self.busy) {
            self.ready.push(server);
            self.share_out_servers(scene);
        } else {
            self.free(server, scene);
            self.look_ahead(scene);
        }
    }
}
