import { DurableObject } from 'cloudflare:workers'

export class Gateway extends DurableObject {
  async putRow(): Promise<boolean> {
    return true
  }
  async removeRow(): Promise<void> {}
}
